"""Two traces side by side."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from perflint.output.compare.comparison import Pair, compare
from perflint.output.compare.document import comparison_document
from perflint.output.compare.page import comparison_page
from perflint.output.compare.text import comparison_text
from perflint.output.terminal import Style
from perflint.tracer.events import Hits, Kernel, Place, Step, Sync
from perflint.tracer.file import read_trace
from perflint.tracer.trace import Trace
from tests.cli.command import ROOT, Command
from tests.output.traces import HOSTILE, header

GOLDEN = Path(__file__).parent / "golden" / "compare"
EXAMPLES = ROOT / "docs" / "examples" / "tracing"
RECORDED = ROOT / "tests" / "tracer" / "data"
PAIRS = {
    "slow-fast": (EXAMPLES / "slow.jsonl.gz", EXAMPLES / "fast.jsonl.gz"),
    "fast-slow": (EXAMPLES / "fast.jsonl.gz", EXAMPLES / "slow.jsonl.gz"),
    "stragglers": (RECORDED / "straggler-host.rank1.jsonl.gz", RECORDED / "straggler-gpu.rank1.jsonl.gz"),
    "same": (RECORDED / "trainer_hooks.jsonl.gz", RECORDED / "trainer_hooks.jsonl.gz"),
}
NAMES = ("a.gz", "b.gz")


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("form", ["txt", "json"])
def test_golden(name: str, form: str, update_golden: bool) -> None:
    before, after = PAIRS[name]
    found = compare(read_trace(before), read_trace(after))
    names = (before.name, after.name)
    if form == "txt":
        text = comparison_text(found, names, Style(False))
    else:
        text = json.dumps(comparison_document(found, names), indent=2) + "\n"
    golden = GOLDEN / f"{name}.{form}"
    if update_golden:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def sync(line: int, text: str = "loss.item()", steps: int = 12, function: str = "train") -> Sync:
    place = Place("train.py", line, 5, line, 16, function, text)
    return Sync(place, "implicit", Hits(steps))


def steps(*times: float) -> list[Step]:
    return [Step(index, 1, ms) for index, ms in enumerate(times)]


def trace(*records: Sync | Step | Kernel, **facts: object) -> Trace:
    return Trace(header(**facts), tuple(records))


def test_lines_are_known_by_their_text() -> None:
    before = trace(sync(10), sync(20, "y.cpu()"), sync(40, "z.tolist()"))
    after = trace(sync(13), sync(20, "w.item()"), sync(41, "z.tolist()", function="log"))
    found = compare(before, after)
    (moved,) = found.kept
    assert moved.before and moved.after and (moved.before.line, moved.after.line) == (10, 13)
    assert [pair.text for pair in found.gone] == ["y.cpu()", "z.tolist()"]
    assert [pair.text for pair in found.new] == ["w.item()", "z.tolist()"]
    assert "train.py:13 (was 10)" in comparison_text(found, NAMES, Style(False))


def test_lines_that_look_the_same() -> None:
    found = compare(trace(sync(10), sync(20)), trace(sync(11), sync(21), sync(31)))
    assert [(pair.before and pair.before.line, pair.after and pair.after.line) for pair in found.kept] == [
        (10, 11),
        (20, 21),
    ]
    assert [pair.after and pair.after.line for pair in found.new] == [31] and not found.gone


def test_a_change_within_the_spread_is_called_so() -> None:
    before = steps(10.0, 11.0, 9.0, 10.5, 9.5)
    near, far = steps(10.2, 11.2, 9.2, 10.7, 9.7), steps(5.0, 5.1, 4.9, 5.2, 4.8)
    assert compare(trace(*before), trace(*near)).is_within_spread
    assert not compare(trace(*before), trace(*far)).is_within_spread
    # The spread of three steps is unknown.
    assert not compare(trace(*before[:3]), trace(*near[:3])).is_within_spread
    text = comparison_text(compare(trace(*before), trace(*near)), NAMES, Style(False))
    assert "A step takes 10.20 ms instead of 10.00 ms: within the spread of the steps." in text
    text = comparison_text(compare(trace(*far), trace(*before)), NAMES, Style(False))
    assert "A step takes 10.00 ms instead of 5.00 ms: 2.00 x slower." in text


def test_what_is_unknown_is_not_zero() -> None:
    found = compare(trace(sync(10), *steps(10.0)), trace(*steps(9.0)))
    assert found.gone[0].cost_ms == Pair(None, 0.0)
    assert found.parts == {} and found.work == () and found.idle_ms == Pair(None, None)
    text = comparison_text(found, NAMES, Style(False))
    assert "         ?      0.000             train.py:10  loss.item()" in text
    assert "note: the run after has no timeline" in text


def test_traces_without_steps_or_gpu() -> None:
    simulated = trace(sync(10), *steps(10.0), simulated=True, devices=())
    text = comparison_text(compare(simulated, trace(*steps(9.0))), NAMES, Style(False))
    assert "A trace has no step times" in text and "the run before was simulated" in text
    text = comparison_text(compare(trace(steps=0), trace(steps=0)), NAMES, Style(False))
    assert "note: the run before has no recorded steps" in text
    without = compare(trace(*steps(9.0), devices=()), trace(*steps(9.0)))
    assert without.waits == Pair(None, 0.0)


def test_conditions_that_differ_are_named() -> None:
    other = trace(*steps(9.0), torch="2.13.0", devices=("NVIDIA A100", "NVIDIA A100"), program=("train.py", "--big"))
    text = comparison_text(compare(trace(*steps(9.0)), other), NAMES, Style(False))
    assert "note: the runs differ in the program: train.py --epochs 1 before, train.py --big after" in text
    assert "note: the runs differ in the GPU: NVIDIA H200 before, NVIDIA A100, NVIDIA A100 after" in text
    assert "note: the runs differ in the version of torch: 2.11.0 before, 2.13.0 after" in text


def test_work_is_per_step() -> None:
    window = [replace(step, profiled=True, busy_ms=5.0, kernels=4) for step in steps(9.0, 9.0)]
    found = compare(
        trace(*window, Kernel("sgemm", "kernel", 8, 4.0)),
        trace(*window, Kernel("sgemm", "kernel", 2, 1.0), Kernel("adam", "kernel", 2, 2.0)),
    )
    assert [(each.kind, each.ms, each.count) for each in found.work] == [
        ("matrix products", Pair(2.0, 0.5), Pair(4.0, 1.0)),
        ("optimizer", Pair(0.0, 1.0), Pair(0.0, 1.0)),
    ]


def test_foreign_text_does_not_drive_a_terminal() -> None:
    found = compare(trace(sync(10, HOSTILE), torch=HOSTILE), trace())
    assert "\x1b" not in comparison_text(found, (HOSTILE, HOSTILE), Style(False))


def test_the_verb(perflint: Command) -> None:
    before, after = (str(path) for path in PAIRS["slow-fast"])
    ran = perflint("compare", before, after)
    assert ran.code == 0 and "1.46 x faster" in ran.out and ran.err == ""
    ran = perflint("compare", before, after, "--output-format", "json")
    assert json.loads(ran.out)["step_ms"]["after"] < 13 and json.loads(ran.out)["before"] == before
    ran = perflint("compare", before, "missing.gz")
    assert ran.code == 2 and "missing.gz cannot be read" in ran.err


def test_the_page(perflint: Command) -> None:
    before, after = PAIRS["slow-fast"]
    ran = perflint("compare", str(before), str(after), "--output-format=html")
    assert (ran.code, ran.out) == (0, "") and "Written to perflint-compare.html." in ran.err
    html = (perflint.folder / "perflint-compare.html").read_text(encoding="utf-8")
    page = ElementTree.fromstring(html)
    text = " ".join("".join(page.itertext()).split())
    assert "A step takes 12.14 ms instead of 17.76 ms: 1.46 x faster." in text
    assert {each.get("id") for each in page.iter("section")} >= {"step", "gone", "work"}
    rows = ["".join(row.itertext()) for row in page.iter("tr")]
    assert any("slow.py:49" in row and "1.937" in row for row in rows)
    assert len([each for each in page.iter("svg") if each.get("class") == "split"]) == 2
    links = {each.get("href", "").removeprefix("#") for each in page.iter("a")}
    assert links - {"content"} <= {each.get("id") for each in page.iter("section")}


def test_the_page_escapes_what_a_trace_says() -> None:
    hostile = trace(sync(3, HOSTILE), *steps(5.0, 5.0, 5.0, 5.0), program=(HOSTILE,), devices=(HOSTILE,))
    plain = trace(*steps(3.0, 3.0, 3.0, 3.0))
    page = ElementTree.fromstring(comparison_page(compare(hostile, plain), (HOSTILE, "b"), "1"))
    assert not {"script", "img", "iframe"} & {each.tag for each in page.iter()}


def test_a_file_for_the_other_formats(perflint: Command) -> None:
    before, after = map(str, PAIRS["slow-fast"])
    assert perflint("compare", before, after, "--output-format=json", "--output=c.json").out == ""
    assert json.loads((perflint.folder / "c.json").read_text())["version"] == 1
    refused = perflint("compare", before, after, "--output", before)
    assert refused.code == 2 and "is a trace to read" in refused.err
    assert perflint("compare", before, after, "--output-format=html", "-o", "-").out.startswith("<!DOCTYPE html>")
