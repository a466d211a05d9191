"""Recordings of the simulation: one made from a small package, and the scores of findings made by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from perflint.tracer.events import CandidateLine, Header, Hits, Observation, Place, Sync
from perflint.tracer.trace import Trace

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "accuracy"))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "accuracy" / "simulated"))

import recording
import score_rules
from happened import happened

FOLDER = Path(__file__).parents[2] / "benchmarks" / "accuracy" / "simulated"
MODULE = """\
import torch


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(3))

    def forward(self, x):
        y = x.to("cuda") * self.scale
        x = x + torch.zeros(3).to(x.device)
        if x.sum() > 0:
            return y * x.max().item()
        return x


def never(x):
    return x.item()


class Shift:
    def __init__(self, given):
        self.parts = [torch.ones(3)]
        self.own = self.parts[0].sum().item()
        self.given = given.sum().item()


class Shifted(Layer):
    def __init__(self, given):
        super().__init__()
        self.shift = Shift(given)
        self.read = self.shift.parts[0].sum().item()
"""
TESTS = """\
import pytest
import torch
from small.layer import Layer, Shifted


@pytest.mark.parametrize("step", range(5))
def test_positive(step):
    assert Layer()(torch.ones(3)).device.type == "cuda"


def test_the_constructor_that_ignores_the_default_device():
    assert torch.Tensor([1.0, 2.0]).device.type == "cuda"


def test_a_finished_module_is_on_the_gpu_without_other_tensors():
    layer = Shifted(torch.ones(3))
    assert layer.scale.device.type == "cuda" and layer.shift.parts[0].device.type == "cpu"


def test_fails():
    assert Layer()(torch.zeros(3)).sum() == 1
"""
HEADER = Header(
    "0", "3.12", "2.11", (), ("t.py",), "/p", "", "module", 0, 6, 1, "finished", True, simulated=True, line_steps=6
)


def place(line: int, file: str = "src/pkg/a.py") -> Place:
    return Place(file, line, 5, line, 9, "f", "text")


def trace(*hits: tuple[int, int], extra: tuple[Any, ...] = ()) -> Trace:
    """A trace with a wait at each line, and the line."""
    waits = [Sync(place(line), "implicit", Hits(count)) for line, count in hits]
    lines = [CandidateLine("src/pkg/a.py", line, True, steps=count) for line, count in hits]
    return Trace(HEADER, (*waits, *lines, *extra))


def merged(*traces: Trace) -> recording.Document:
    runs = [recording.Run(f"test_{number}.py", {"passed": 1}, each) for number, each in enumerate(traces)]
    return recording.merged("pkg", "1.0", "src/", runs)


def finding(line: int, code: str = "TPF101", heat: str = "hot", ruling: str | None = "confirmed") -> dict[str, Any]:
    verdict = None if ruling is None else {"ruling": ruling, "why": ""}
    return {"path": "pkg/a.py", "line": line, "end_line": line, "code": code, "heat": heat, "verdict": verdict}


def test_runs_are_merged_by_place() -> None:
    document = merged(trace((3, 2), (7, 1)), trace((3, 4)))
    assert [(row["file"], row["line"], row["count"]) for row in document["syncs"]] == [
        ("pkg/a.py", 3, 6),
        ("pkg/a.py", 7, 1),
    ]
    assert document["lines"]["cuda"] == {"pkg/a.py": [3, 7]}
    assert document["counts"] == [{"pkg/a.py": [[3, 2], [7, 1]]}, {"pkg/a.py": [[3, 4]]}]


def test_other_files_and_tests_are_left_out() -> None:
    others = [CandidateLine(name, 1, True) for name in ("tests/test_a.py", "src/pkg/tests/a.py", "/lib/b.py")]
    moved = Sync(place(9), "implicit", Hits(1), origin="module-move")
    document = merged(trace((3, 1), extra=(*others, moved)))
    assert list(document["lines"]["cuda"]) == ["pkg/a.py"]
    assert [row.get("excluded") for row in document["syncs"]] == [None, "module move"]


def test_a_recording_becomes_the_same_traces_again(tmp_path: Path) -> None:
    seen = Observation(place(3), "to.same-tensor", Hits(2, 1), 12, detail="3 float32", total_bytes=24)
    path = tmp_path / "r.json.gz"
    recording.write(path, merged(trace((3, 2), extra=(seen,)), trace((7, 1))))
    first, second = recording.traces(recording.read(path), tmp_path)
    (wait,) = first.of(Sync)
    assert (wait.place.file, wait.place.line, wait.place.column, wait.hits.steps) == ("pkg/a.py", 3, 5, 2)
    (again,) = first.of(Observation)
    assert (again.fact, again.hits, again.bytes, again.total_bytes) == ("to.same-tensor", Hits(2, 1), 12, 24)
    assert first.of(CandidateLine) == (CandidateLine("pkg/a.py", 3, True, steps=2),)
    assert [each.place.line for each in second.of(Sync)] == [7]
    assert not second.of(Observation)


def test_a_process_that_was_ended_counts_and_has_no_trace(tmp_path: Path) -> None:
    runs = [recording.Run("test_a.py", {"not collected": 1}, None, "ended by the time limit")]
    document = recording.merged("pkg", "1.0", "", runs)
    assert document["runs"][0]["outcomes"] == {"not collected": 1}
    assert not list(recording.traces(document, tmp_path))


def test_rules_are_scored_on_lines_that_ran() -> None:
    document = merged(trace((3, 2), (7, 1), (8, 1)))
    findings = [
        finding(3),
        finding(7, ruling="refuted"),
        finding(8, "TPF205", heat="cold", ruling=None),
        finding(20, ruling=None),
    ]
    rules = score_rules.scores(document, findings, {})
    first, second = rules["TPF101"], rules["TPF205"]
    assert (first.findings, first.ran, first.true, first.waits) == (3, 2, 0.5, 2)
    assert (first.called_hot, first.hot) == (2, 1)
    assert (second.ran, second.true, second.called_cold, second.cold) == (1, None, 1, 1)


def test_a_verdict_counts_where_only_another_line_of_the_expression_ran() -> None:
    (rule,) = score_rules.scores(merged(trace((3, 2))), [finding(4)], {}).values()
    assert (rule.ran, rule.true) == (1, 1.0)


def test_places_that_nothing_found_count_against_a_rule() -> None:
    document = merged(trace((3, 1), (7, 1)))
    places = {place(3, "pkg/a.py"), place(7, "pkg/a.py"), place(7, "pkg/tests/a.py")}
    rules = score_rules.scores(document, [finding(3, "TPF205")], {"TPF205": places})
    assert (rules["TPF205"].found, rules["TPF205"].happened) == (1, 2)


def test_observations_count_for_the_rules_that_they_confirm(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "a.py").write_text("\n" * 10, encoding="utf-8")
    seen = [
        Observation(place(3), "optimizer.capturable", Hits(6), detail="2 parameters"),
        Observation(place(7), "optimizer.captured", Hits(6), detail="2 parameters"),
    ]
    found = happened(merged(trace((3, 6), (7, 6), extra=tuple(seen))), tmp_path)
    assert {at.line for at in found["TPF607"]} == {3}


def test_a_package_is_recorded_by_its_tests_and_scored(tmp_path: Path) -> None:
    for name, text in (("small/__init__.py", ""), ("small/layer.py", MODULE), ("tests/test_layer.py", TESTS)):
        path = tmp_path / "small-1.0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    output = tmp_path / "small.json.gz"
    command = [sys.executable, str(FOLDER / "record.py"), str(tmp_path / "small-1.0"), "--package", "small"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    subprocess.run([*command, "--version", "1.0", "--output", str(output)], env=environment, check=True)
    document = recording.read(output)
    (run,) = document["runs"]
    assert run["outcomes"] == {"passed": 7, "failed": 1}
    # Tensors of tests and of finished modules are on the GPU, those that `forward` and constructors make are not.
    assert sorted(row["line"] for row in document["syncs"]) == [11, 12, 13, 25]
    ran = document["lines"]["cuda"]["small/layer.py"]
    assert 14 in ran and 18 not in ran
    found = score_rules.claims(score_rules.judged(document, tmp_path / "small-1.0", "small"))
    rules = score_rules.scores(document, found, happened(document, tmp_path / "small-1.0"))
    everything = score_rules.Rule()
    for rule in rules.values():
        everything.add(rule)
    assert everything.rulings["confirmed"] >= 2
    assert all(
        each["verdict"] is None or each["verdict"]["ruling"] == "not executed" for each in found if each["line"] == 18
    )
