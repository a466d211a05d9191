"""What the measurements of the tracer conclude, from numbers small enough to judge by eye."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perflint.tracer.events import Header, Hits, PageableCopy, Place, Step, Sync, SyncCost
from perflint.tracer.trace import Trace

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "tracer"))

import cost
import overhead
import sites
from common import HERE, Spread

HEADER = Header("0", "3.12", "2.11", ("GPU",), ("a.py",), "/p", "", "optimizer", 5, 3, 1, "finished", True)


def test_sites_are_compared_by_place_and_count() -> None:
    here, there, new = (sites.Site("/x/a.py", line, line, 4, 12) for line in (1, 2, 3))
    found = sites.compare({here: 5, there: 2}, {here: 4, new: 1})
    assert (found.sites, found.found, found.hits, found.hits_found) == (2, 1, 7, 4)
    assert (found.missing, found.extra) == (("a.py:2:4-2:12",), ("a.py:3:4-3:12",))


def test_columns_of_traces_become_those_of_python(tmp_path: Path) -> None:
    """Characters from 1 become bytes from 0; explicit syncs and other people's files do not count."""
    file = tmp_path / "a.py"
    file.write_text("x = 'é', y.item()\n", encoding="utf-8")
    place = Place(str(file), 1, 10, 1, 18, "<module>", "y.item()")
    syncs = [
        Sync(place, "implicit", Hits(3, 1)),
        Sync(place, "implicit", Hits(1), thread="worker"),
        Sync(place, "explicit", Hits(9)),
        Sync(Place("/elsewhere/b.py", 1, 1, 1, 2, "f", ""), "implicit", Hits(1)),
    ]
    assert sites.traced_sites(syncs, f"{tmp_path}/") == {sites.Site(str(file), 1, 1, 10, 18): 5}


def test_planted_copies_are_the_marked_lines(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text('"""Lines with # pageable."""\nx.to(y)  # pageable\nx.cuda()\nz.to(y)  # pageable\n')
    seen = [PageableCopy(Place(str(file), line, 1, line, 8, "f", ""), "host-to-device", 4, Hits(1)) for line in (2, 3)]
    found = sites.copies(file, seen)
    assert (found.sites, found.found, len(found.missing), len(found.extra)) == (2, 1, 1, 1)


def test_a_plain_recording_sees_what_is_warned_of(tmp_path: Path) -> None:
    """Also where the program filters warnings, from the first line of its own file on."""
    pytest.importorskip("torch")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "device.py").write_text(
        "import warnings\ndef sync():\n    warnings.warn('called a synchronizing CUDA operation')\n"
    )
    (tmp_path / "own").mkdir()
    program = tmp_path / "own" / "a.py"
    program.write_text("import device\nfor _ in range(3):\n    x = 'é', device.sync()\nraise SystemExit(0)\n")
    command = [sys.executable, HERE / "record_plain.py", "--output", "out.json", program]
    subprocess.run(command, cwd=tmp_path, check=True, env={"PYTHONPATH": str(tmp_path / "lib")})
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["rows"] == [[str(program), 3, 3, 14, 27, 3]] and document["without_frame"] == 0
    assert sites.plain_sites(document) == {sites.Site(str(program), 3, 3, 14, 27): 3}


def test_ratios_are_of_medians_and_their_spread_of_pairs() -> None:
    steps = max(overhead.PHASES["after"]) + 1
    alone = [[10.0] * steps, [12.0] * steps]
    beside = [[10.0] * steps, [15.0] * steps]
    for step in overhead.PHASES["profiled"]:
        beside[0][step] = 30.0
    found = overhead.ratios(alone, beside)
    assert found["recorded"] == Spread(12.5 / 11, 1.0, 1.25)
    assert found["profiled"] == Spread(22.5 / 11, 1.25, 3.0)
    assert not set(overhead.PHASES["recorded"]) & set(overhead.PHASES["profiled"])


Times = dict[str, list[float]]


@pytest.mark.parametrize(
    ("times", "reported", "has_effect", "met"),
    [
        ({"all": [12.0, 12.2], "none": [10.0, 10.0]}, 2.2, True, True),
        ({"all": [12.0, 12.2], "none": [10.0, 10.0]}, 2.6, True, False),
        ({"all": [12.0, 12.2], "none": [10.0, 10.0]}, 0.0, True, False),
        ({"all": [10.05, 10.05], "none": [10.0, 10.0]}, 0.12, True, True),
        ({"all": [10.0, 10.5], "none": [10.0, 10.0]}, 0.3, True, None),
        ({"all": [10.0, 10.5], "none": [10.0, 10.0]}, 0.05, False, True),
        ({"all": [10.0, 10.5], "none": [10.0, 10.0]}, 0.3, False, False),
    ],
)
def test_a_cost_is_held_against_the_difference(
    times: Times, reported: float, has_effect: bool, met: bool | None
) -> None:
    verdict = cost.judge(times, [{"first": reported / 2, "second": reported / 2}], has_effect)
    assert verdict.is_met is met
    assert verdict.to_json()["met"] is met


def test_each_plant_beside_what_it_saves_alone() -> None:
    times = {"all": [9.0, 9.5], "none": [5.0, 5.0], "without first": [7.0, 8.0], "without second": [6.0, 6.5]}
    found = cost.each(times, [{"first": 1.5}])
    assert found == {
        "first": {"saved_alone": [1.75, 1.5, 2.0], "reported": [1.5, 1.5, 1.5]},
        "second": {"saved_alone": [3.0, 3.0, 3.0], "reported": [0.0, 0.0, 0.0]},
    }


def test_plants_are_found_by_their_lines() -> None:
    marked = Place("planted.py", 3, 1, 3, 9, "step", "z[0, 0].item()  # plant: item")
    other = Place("planted.py", 9, 1, 9, 9, "step", "z.item()")
    records = (
        Step(1, 1, 9.0, True, 8.0, 1.0),
        *(Sync(place, "implicit", Hits(3)) for place in (marked, other)),
        *(SyncCost(place, 0.5, 0.5) for place in (marked, other)),
    )
    assert cost.reported(Trace(HEADER, records)) == {"item": 0.5}


def test_cases_are_read_without_a_gpu() -> None:
    found = cost.cases()
    assert found["end-3ms"] and not found["side-stream"] and len(found) >= 14
    lines = (HERE / "planted.py").read_text().splitlines()
    planted = {name for line in lines if (name := cost.plant_of(line)) and name.isidentifier()}
    assert planted >= {"item", "first", "second", "third", "flag", "before", "late"}


@pytest.mark.parametrize(
    ("name", "key", "table"), [("cost", "cases", cost.table), ("overhead", "models", overhead.table)]
)
def test_the_results_that_are_checked_in_can_be_shown(
    name: str, key: str, table: Callable[[dict[str, dict[str, Any]]], str]
) -> None:
    rows = json.loads((HERE / "results" / f"{name}.json").read_text())[key]
    assert table(rows).count("\n") == len(rows) + 1
