"""Recordings of the simulation, and the scores of findings made by hand."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perflint.tracer.events import CandidateLine, Hits, Observation, Place, Sync

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "accuracy"))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "accuracy" / "simulated"))

import recording
import score_rules
from happened import happened

SCORES = Path(score_rules.__file__).with_name("scores.json")

FILE = "pkg/a.py"
RUN = {"file": "t.py", "outcomes": {"passed": 1}, "torch": "2.11", "devices": [], "ended": "finished", "steps": 6}
RUN |= {"step_source": "module", "line_steps": 6, "call_steps": 6, "lines_recorded": False}


def wait(line: int, **seen: int) -> dict[str, Any]:
    """A wait at a line; `seen` has by run how often it came in steps."""
    place = {"file": FILE, "line": line, "end_line": line, "col": 4, "end_col": 8, "func": "f", "text": "text"}
    hits = {run.removeprefix("run"): {"hits": [count, 0]} for run, count in seen.items()}
    return {**place, "kind": "implicit", "count": sum(seen.values()), "seen": hits, "origin": ""}


def observation(line: int, fact: str, count: int, **fields: Any) -> dict[str, Any]:
    """What a witness saw at a line in the first run."""
    at = {"file": FILE, "line": line, "column": 5, "end_line": line, "end_column": 9, "function": "f", "text": "text"}
    return {"place": at, "fact": fact, "sampled": False, "seen": {"0": {"hits": [count, 0], **fields}}}


def document(*counts: dict[int, int], syncs: Sequence[Any] = (), observations: Sequence[Any] = ()) -> dict[str, Any]:
    """A recording of runs; `counts` has for each the steps in which each line ran."""
    empty: dict[str, Any] = {key: [] for key in recording.KINDS}
    return empty | {
        "versions": {"pkg": "1.0"},
        "runs": [RUN for _ in counts],
        "counts": [{FILE: [list(pair) for pair in each.items()]} for each in counts],
        "lines": {"cuda": {FILE: sorted({line for each in counts for line in each})}},
        "syncs": list(syncs),
        "observations": list(observations),
    }


def finding(line: int, code: str = "TPF101", heat: str = "hot", ruling: str | None = "confirmed") -> dict[str, Any]:
    verdict = None if ruling is None else {"ruling": ruling, "why": ""}
    return {"path": FILE, "line": line, "end_line": line, "code": code, "heat": heat, "verdict": verdict}


def test_a_recording_becomes_the_traces_of_its_runs(tmp_path: Path) -> None:
    same = observation(3, "to.same-tensor", 2, bytes=12, ms=0.5, detail="3 float32", total_bytes=24)
    waits = (wait(3, run0=2), wait(7, run1=1))
    first, second = recording.traces(document({3: 2}, {7: -1}, syncs=waits, observations=(same,)), tmp_path)
    (there,) = first.of(Sync)
    assert (there.place.file, there.place.line, there.place.column, there.hits.steps) == (FILE, 3, 5, 2)
    (again,) = first.of(Observation)
    assert (again.fact, again.hits, again.bytes, again.total_bytes) == ("to.same-tensor", Hits(2, 0), 12, 24)
    assert first.of(CandidateLine) == (CandidateLine(FILE, 3, True, steps=2),)
    assert second.of(CandidateLine) == (CandidateLine(FILE, 7, False, outside=True),)
    assert [each.place.line for each in second.of(Sync)] == [7]
    assert not second.of(Observation)


def test_a_process_that_was_ended_has_no_trace(tmp_path: Path) -> None:
    ended = document({}) | {"runs": [{"file": "t.py", "outcomes": {"not collected": 1}, "ended": "by the time limit"}]}
    assert not list(recording.traces(ended, tmp_path))


def test_rules_are_scored_on_lines_that_ran() -> None:
    recorded = document({3: 2, 7: 1, 8: 1}, syncs=(wait(3, run0=2), wait(7, run0=1), wait(8, run0=1)))
    findings = [
        finding(3),
        finding(7, ruling="refuted"),
        finding(8, "TPF205", heat="cold", ruling=None),
        finding(20, ruling=None),
    ]
    rules = score_rules.scores(recorded, findings, {})
    first, second = rules["TPF101"], rules["TPF205"]
    assert (first.findings, first.ran, first.true, first.waits) == (3, 2, 0.5, 2)
    assert (first.called_hot, first.hot) == (2, 1)
    assert (second.ran, second.true, second.called_cold, second.cold) == (1, None, 1, 1)


def test_scores_are_written_with_the_share_that_is_true() -> None:
    rule = score_rules.Rule(findings=2, ran=1)
    rule.rulings["confirmed"] += 1
    written = score_rules.in_json({"TPF101": rule})["TPF101"]
    assert written["true"] == 1.0 and written["rulings"]["confirmed"] == 1 and written["findings"] == 2
    assert written.keys() == json.loads(SCORES.read_text(encoding="utf-8"))["rules"]["TPF101"].keys()


def test_a_verdict_counts_where_only_another_line_of_the_expression_ran() -> None:
    (rule,) = score_rules.scores(document({3: 2}), [finding(4)], {}).values()
    assert (rule.ran, rule.true) == (1, 1.0)


def test_places_that_nothing_found_count_against_a_rule() -> None:
    at = ((FILE, 3), (FILE, 7), ("pkg/tests/a.py", 7))
    places = {Place(file, line, 5, line, 9, "f", "text") for file, line in at}
    rules = score_rules.scores(document({3: 1, 7: 1}), [finding(3, "TPF205")], {"TPF205": places})
    assert (rules["TPF205"].found, rules["TPF205"].happened) == (1, 2)


def test_observations_count_for_the_rules_that_they_confirm(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / FILE).write_text("\n" * 10, encoding="utf-8")
    seen = tuple(
        observation(line, f"optimizer.{fact}", 6, bytes=0, ms=0.0, detail="2 parameters", total_bytes=0)
        for line, fact in ((3, "capturable"), (7, "captured"))
    )
    found = happened(document({3: 6, 7: 6}, observations=seen), tmp_path)
    assert {at.line for at in found["TPF607"]} == {3}


def test_the_recordings_become_traces(tmp_path: Path) -> None:
    every = (Path(recording.__file__).parent / "recordings").glob("*.json.gz")
    for path in sorted(every, key=lambda path: path.stat().st_size)[:10]:
        recorded = recording.read(path)
        made = list(recording.traces(recorded, tmp_path))
        assert len(made) == sum("steps" in run for run in recorded["runs"])
        assert sum(len(each.of(Sync)) for each in made) == sum(len(row["seen"]) for row in recorded["syncs"])
