"""The page of a report: what it says, and that nothing in a trace can break it."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Ruling, Safety, Severity, Span, Verdict
from perflint.output.report import page as module
from perflint.output.report.clock import Clock
from perflint.output.report.code import Code, excerpt
from perflint.output.report.facts import gather
from perflint.output.report.kinds import kind_of
from perflint.output.report.markup import Markup, tag, text, with_code
from perflint.output.report.numbers import ms, percent, size, times
from perflint.output.report.page import Recorded, report_page
from perflint.output.report.timeline import coverage, nice
from perflint.output.report.verdicts import Checked
from perflint.tracer.events import (
    KINDS,
    Activity,
    Experiment,
    Failure,
    Gap,
    Header,
    Hits,
    Idle,
    Kernel,
    ModuleCall,
    Place,
    Record,
    SourceFile,
    Step,
    Sync,
    SyncCost,
)
from perflint.tracer.file import read_trace
from perflint.tracer.kineto import Interval
from perflint.tracer.places import source_file
from perflint.tracer.trace import Trace
from perflint.tracer.verdicts import EXPERIMENT_CODES
from tests.output.traces import CODE, FLOAT, HOSTILE, ITEM, PRINTED, RECORDS, TRACE, header, poisoned, project, without
from tests.tracer.test_file import records

STYLE = Path(module.__file__).parent / "style.css"
NOWHERE = Path("/nonexistent")


def page(trace: Trace = TRACE, root: Path = NOWHERE, checked: Checked | None = None) -> str:
    return report_page([Recorded("trace.jsonl.gz", trace, root)], "0.1.0", checked)


def parsed(html: str) -> ElementTree.Element:
    assert html.startswith("<!DOCTYPE html>\n")
    return ElementTree.fromstring(html.partition("\n")[2].encode())


def words(html: str) -> str:
    """What is there to read, without the style."""
    root = parsed(html)
    body = root.find("body")
    assert body is not None
    return re.sub(r"[\s\u00a0]+", " ", " ".join(body.itertext()))


def finding(ruling: Ruling | None = None, **changes: Any) -> Finding:
    verdict = None if ruling is None else Verdict(ruling, "once a step", 1.5, 0.16, 1.0)
    made = Finding(
        "/project/train.py", Span(11, 18, 11, 29), "TPF101", "scalar-read-in-loop", "`loss.item()` waits",
        Severity.WARNING, Confidence.HIGH, Heat.HOT, Effect.SYNC, verdict=verdict,
    )  # fmt: skip
    return replace(made, **changes)


class Tags(HTMLParser):
    """What a browser makes of a page, roughly."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_it_says_what_a_step_takes_and_why() -> None:
    said = words(page())
    assert "step time 9.10 ms" in said
    assert "GPU idle 2.10 ms 23% of the step" in said
    assert "cost of waits 1.26 ms 14% of the step" in said
    assert "Most of the idle time (1.26 of 2.10 ms) is due to waits for the GPU" in said
    assert "train.py --epochs 1" in said and "NVIDIA H200" in said and "2026-11-21 21:14:05 UTC" in said


def test_the_program_is_named_below_the_root() -> None:
    title = parsed(page(replace(TRACE, header=header(program=("/project/bin/train.py", "-x"))))).find("head/title")
    assert title is not None and title.text == "bin/train.py -x – perflint report"


def test_the_parts_of_a_step_are_the_step() -> None:
    facts = gather(TRACE)
    assert facts.idle is not None and facts.busy_ms is not None and facts.idle_ms is not None
    assert facts.idle.sync_ms + facts.idle.loader_ms + facts.idle.host_ms == pytest.approx(facts.idle_ms)
    assert facts.busy_ms + facts.idle_ms == pytest.approx(facts.step_ms, rel=0.01)
    assert facts.idle.loader_ms == pytest.approx(TRACE.idle_share * 0.4)


def test_costs_are_those_of_the_trace() -> None:
    lines = gather(TRACE).lines
    assert [(line.line, line.per_step) for line in lines] == [(11, 2.0), (12, 2.0)]
    assert lines[0].cost_ms == pytest.approx(TRACE.cost_ms(ITEM)) and lines[0].cost_ms > 1
    assert lines[0].costs == {ITEM: pytest.approx(TRACE.cost_ms(ITEM)), FLOAT: 0.0}
    assert lines[1].cost_ms == 0.0


def test_a_replay_knows_better_and_says_what_one_wait_alone_costs() -> None:
    """The wait after it would take over: only both together save something."""
    trace = replace(TRACE, records=(*RECORDS, SyncCost(PRINTED, 0.9, 0.1)))
    first, second = gather(trace).lines
    assert (first.line, first.cost_ms, second.cost_ms) == (12, 0.9, 0.0)
    idle = gather(trace).idle
    assert idle is not None and idle.sync_ms == 0.9
    assert "Removing only this wait saves 0.100 ms" in words(page(trace))
    assert "Without this wait alone" not in words(page(replace(TRACE, records=(*RECORDS, SyncCost(PRINTED, 0.9, 0.9)))))


def test_source_is_shown_where_it_is_what_was_traced(tmp_path: Path) -> None:
    html = page(root=project(tmp_path))
    assert "<mark>loss.item()</mark> + <mark>float(loss)</mark>" in html
    assert "optimizer.step()" in html and "changed since" not in html and "not available" not in html


def test_source_that_has_changed_is_not_shown(tmp_path: Path) -> None:
    html = page(root=project(tmp_path, CODE.replace("optimizer.step()", "secret = 1")))
    assert "secret" not in html and "optimizer.step()\n" not in words(html) and html.count("optimizer.step()") == 1
    assert "total += loss.item() + float(loss)" in html
    assert "Source changed since the trace: train.py." in words(html)


def test_no_file_is_shown_that_the_trace_does_not_know(tmp_path: Path) -> None:
    """A foreign trace may name any file, but must know what is in it."""
    (tmp_path / "secret.py").write_text("password = 'x'\n", encoding="utf-8")
    where = Place("secret.py", 1, 1, 1, 9, "f", "?")
    named = replace(TRACE, records=(*RECORDS, Sync(where, "implicit", Hits(12)), SourceFile("secret.py", "0" * 16)))
    assert "password" not in page(named, tmp_path)
    unnamed = replace(TRACE, records=(*RECORDS, Sync(where, "implicit", Hits(12))))
    assert "password" not in page(unnamed, tmp_path)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"# coding: nonsense\n", b""])
def test_files_that_cannot_be_read_are_missing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "train.py").write_bytes(content)
    code = Code(TRACE, tmp_path)
    assert code.lines("train.py") is None and code.missing == ["train.py"]


def test_folders_and_devices_are_not_read(tmp_path: Path) -> None:
    trace = replace(TRACE, records=(SourceFile("/dev/zero", ""), SourceFile("folder.py", "")))
    (tmp_path / "folder.py").mkdir()
    code = Code(trace, tmp_path)
    assert code.lines("/dev/zero") is None and code.lines("folder.py") is None


def test_excerpts_mark_what_goes_over_lines() -> None:
    lines = ["f(", "    x.item(),", ")"]
    html = excerpt([Place("a.py", 1, 1, 3, 2, "f", "f(")], lines, "a.py:1")
    assert re.findall("<mark>(.*?)</mark>", html) == ["f(", "x.item(),", ")"]
    whole_line = excerpt([Place("a.py", 2, 1, 2, 1, "f", "x")], lines, "a.py:2")
    assert "<mark>" not in whole_line and 'class="hit"' in whole_line


REMARKS: list[tuple[Trace, str]] = [
    (replace(TRACE, header=header(devices=(), simulated=True)), "Simulated: there was no GPU"),
    (Trace(header(devices=())), "No GPU: the program used none"),
    (Trace(header(steps=0)), "No steps: none were found"),
    (Trace(header(), RECORDS[1:4]), "Costs are not known: there were too few steps"),
    (replace(TRACE, records=RECORDS[9:]), "Few steps: 2 without the profiler"),
    (replace(TRACE, header=header(ended="KeyError")), "The program did not finish: it ended with KeyError."),
    (replace(TRACE, header=header(ended="running")), "its end was not recorded"),
    (replace(TRACE, header=header(lines_recorded=False)), "not every line that ran was recorded"),
    (TRACE, "The tracer's compilation failed: no counters"),
    (TRACE, "Source not available: train.py."),
    (TRACE, "The idle time that the profiler adds, 16% of what it saw, is taken out."),
]


@pytest.mark.parametrize(("trace", "remark"), REMARKS, ids=[remark[:24] for _, remark in REMARKS])
def test_what_is_missing_is_said(trace: Trace, remark: str) -> None:
    assert remark in words(page(trace))


def test_a_good_trace_needs_no_remarks(tmp_path: Path) -> None:
    assert 'class="note"' not in page(without(Failure), project(tmp_path))


def test_a_simulated_trace_has_no_times() -> None:
    said = words(page(replace(without(Activity, Idle, Gap), header=header(simulated=True, devices=()))))
    assert "step time" not in said and "Lines at which the CPU would wait" in said


def test_a_program_without_waits_is_told_so() -> None:
    assert "No line waited for the GPU in a recorded step." in words(page(without(Sync)))


def test_waits_outside_of_steps_are_counted() -> None:
    assert "before or after the recorded steps" not in words(page())
    before = Sync(Place("train.py", 1, 1, 1, 3, "<module>", "import torch"), "implicit", Hits(0, 1))
    said = words(page(replace(TRACE, records=(*RECORDS, before))))
    assert "1 more line waited only before or after the recorded steps." in said


def test_allowed_waits_and_pageable_copies_have_their_tables() -> None:
    said = words(page())
    assert "once an epoch" in said and "36.8 MiB" in said and "host to device" in said


def test_compilation_memory_and_modules_are_shown() -> None:
    said = words(page())
    for part in ("Tensor.item() called", "size mismatch", "cpu device", "89.2 MiB", "cudaFree waits for the GPU",
                 "64 × 3 × 224 × 224 float32 channels_last cuda:0", "training, autocast bfloat16"):  # fmt: skip
        assert part in said


def test_modules_of_one_kind_are_one_row() -> None:
    call = next(record for record in RECORDS if isinstance(record, ModuleCall))
    trace = replace(TRACE, records=tuple(replace(call, name=f"h.{number}") for number in range(12)))
    said = words(page(trace))
    assert "1 kind of calls in 2 watched steps" in said
    assert "h.0, h.1, h.2 and 9 more" in said and "h.3" not in said


def test_experiments_come_with_their_spread() -> None:
    said = words(page())
    assert "bias=False" in said and "1.37 ×" in said and "1.33 – 1.41" in said
    assert "0.412 ms before, 0.301 ms after (20 repeats, 2 a step); outputs are equal" in said
    assert "The outputs are compared elsewhere." in said


def test_verdicts_are_counted_and_shown() -> None:
    found = (finding(Ruling.CONFIRMED), finding(Ruling.NO_COST), finding(Ruling.REFUTED), finding(None))
    said = words(page(checked=Checked(found, ("/project/train.py",), ("a.py: cannot be read",), "/project")))
    assert "4 findings: 1 confirmed; 1 confirmed, no cost; 1 refuted; 1 without a verdict." in said
    assert said.count("TPF101 scalar-read-in-loop") == 4 and "/project/train.py" not in said
    assert "shown with these lines" in said
    assert "Source changed since the trace: train.py." in said and "Not checked: a.py: cannot be read" in said
    assert "The linter finds nothing" in words(page(checked=Checked(())))
    assert "Findings of the linter" not in words(page())


def test_ranks_stand_side_by_side() -> None:
    recorded = [
        Recorded(f"trace.rank{rank}.jsonl.gz", replace(TRACE, header=header(rank=rank, world_size=12)), NOWHERE)
        for rank in range(12)
    ]
    html = report_page(recorded, "0.1.0")
    said = words(html)
    assert "Rank 11 of 12" in said and "4 more traces are not shown in full" in said
    assert html.count('id="t7-overview"') == 1 and 'id="t8-overview"' not in html
    check_structure(html)


def test_collectives_are_no_work_of_ones_own() -> None:
    """Rank 0 was recorded as busy all the time: it waited in a collective for rank 1, whose host was late."""
    data = Path(__file__).parents[1] / "tracer" / "data"
    recorded = [
        Recorded(path.name, read_trace(path), NOWHERE) for path in sorted(data.glob("straggler-host.rank*.jsonl.gz"))
    ]
    first, second = (gather(each.trace) for each in recorded)
    assert first.busy_ms == pytest.approx(14.7, abs=0.1) and first.collective_ms == pytest.approx(8.7, abs=0.1)
    assert second.collective_ms < 0.5 and second.idle_ms == pytest.approx(8.8, abs=0.1)
    html = report_page(recorded, "0.1.0")
    said = words(html)
    assert "Rank 1 makes the others wait, 10.40 ms per step" in said
    assert "For 8.70 ms the GPU does nothing but collectives." in said
    assert 'class="meeting"' in html and "collectives, nothing else 8.70 ms 59%" in said
    check_structure(html)
    assert "collectives" not in words(page())


def check_structure(html: str) -> None:
    """What screen readers rely on."""
    root = parsed(html)
    ids = Counter(element.get("id") for element in root.iter() if element.get("id"))
    assert all(number == 1 for number in ids.values()), ids
    for element in root.iter():
        for name in ("aria-labelledby", "aria-describedby"):
            assert all(part in ids for part in (element.get(name) or "").split()), element.attrib
        if (link := element.get("href")) is not None:
            assert link == "data:," or link.removeprefix("#") in ids
    levels = [int(element.tag[1]) for element in root.iter() if re.fullmatch("h[1-6]", element.tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for table in root.iter("table"):
        caption = table.find("caption")
        assert caption is not None and "".join(caption.itertext()).strip()
        assert all(cell.get("scope") for cell in table.iter("th"))
        heads = len(table.findall("thead/tr/th"))
        for row in table.findall("tbody/tr"):
            assert sum(int(cell.get("colspan", 1)) for cell in row) == heads
    for svg in root.iter("svg"):
        assert svg.get("aria-hidden") == "true" or (svg.get("role") == "img" and svg.find("title") is not None)


def test_the_structure_is_sound(tmp_path: Path) -> None:
    check_structure(page(root=project(tmp_path), checked=Checked((finding(Ruling.CONFIRMED),))))
    check_structure(page(Trace(header(steps=0))))


ALLOWED = set(
    "html head meta title link style body a svg defs pattern rect path header p h1 h2 h3 code dl div dt dd nav ul li "
    "main section b small span strong table caption thead tbody tr th td details summary pre mark ol desc line text "
    "wbr footer".split()
)


def check_harmless(html: str) -> None:
    """Nothing of a trace has become markup, and nothing is asked for from anywhere."""
    html.encode()
    for name, attributes in Tags(html).found:
        assert name in ALLOWED
        assert not [key for key in attributes if key.startswith("on") or key in ("src", "style", "action", "srcset")]
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
    assert "alert(1)</" not in html
    assert not [character for character in set(html) if not (character.isprintable() or character in "\n\u00a0")]
    assert "url(http" not in html and "@import" not in html and "//" not in STYLE.read_text("utf-8")


def test_hostile_text_stays_text() -> None:
    for kept in (frozenset[str](), frozenset({"cause", "kind", "direction", "device", "origin", "file"})):
        trace = Trace(poisoned(TRACE.header), tuple(poisoned(record, kept) for record in RECORDS))
        bad = finding(Ruling.CONFIRMED, message=HOSTILE, path=HOSTILE, name=HOSTILE)
        checked = Checked((bad,), (HOSTILE,), (HOSTILE,))
        html = report_page([Recorded(HOSTILE, trace, NOWHERE)] * 2, "0.1.0", checked)
        parsed(html)
        check_harmless(html)
        assert "&lt;script&gt;" in html and "\\u202e" in html and "\\udc80" in html


def test_hostile_source_stays_text(tmp_path: Path) -> None:
    code = "x = '</code><script>alert(1)</script>\u202e\x0c'; y.item()\n"
    (tmp_path / "a.py").write_text(code, encoding="utf-8")
    where = Place("a.py", 1, 50, 1, 58, "f", code.strip())
    trace = Trace(header(), (source_file("a.py", [code]), Sync(where, "implicit", Hits(12))))
    html = page(trace, tmp_path)
    parsed(html)
    check_harmless(html)
    assert "&lt;/code&gt;&lt;script&gt;" in html


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_trace_gives_a_sound_page(data: st.DataObject) -> None:
    any_record: st.SearchStrategy[Record] = st.one_of([records(kind) for kind in KINDS.values()])
    trace = Trace(data.draw(records(Header)), tuple(data.draw(st.lists(any_record, max_size=8))))
    html = page(trace)
    parsed(html)
    check_harmless(html)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_ranks_give_a_sound_page(data: st.DataObject) -> None:
    any_record: st.SearchStrategy[Record] = st.one_of([records(kind) for kind in (Step, Activity, Gap, Sync, Idle)])
    drawn = [Trace(data.draw(records(Header)), tuple(data.draw(st.lists(any_record, max_size=5)))) for _ in range(2)]
    world = data.draw(st.sampled_from([2, 3, 2**61]))
    ranks = (replace(trace, header=replace(trace.header, rank=at, world_size=world)) for at, trace in enumerate(drawn))
    html = report_page([Recorded("a", trace, NOWHERE) for trace in ranks], "0.1.0")
    parsed(html)
    check_harmless(html)


def test_a_page_is_bounded() -> None:
    """As much as a trace can hold of everything, with long names."""
    long = "x" * 5000
    where = [Place(f"{long}{number}.py", number, 1, number, 9, long, long) for number in range(3000)]
    bulk: list[Record] = [Step(index, 1, 9.0) for index in range(2048)]
    bulk += [Step(2048 + index, 1, 9.0, True, 5.0, 4.0, 1000, 10) for index in range(20)]
    bulk += [Activity(2048 + number // 1000, number * 9.0, 5.0, number % 9, "kernel", long) for number in range(20_000)]
    bulk += [Idle(2048 + number // 100, number * 90.0, 4.0, "sync", where[number]) for number in range(1000)]
    bulk += [Sync(each, "implicit", Hits(12), stack=(long,) * 8, inner=long) for each in where]
    bulk += [Gap(2048, "sync", each, 1, 0.1, 0.1) for each in where]
    call = next(record for record in RECORDS if isinstance(record, ModuleCall))
    bulk += [replace(call, name=long, settings=f"{number}{long}") for number in range(20_000)]
    bulk += [replace(record, subject=long) for record in RECORDS if isinstance(record, Experiment)] * 1000
    bulk += [Failure(long, long)] * 1000
    began = time.perf_counter()
    checked = Checked((finding(message=long),) * 5000)
    html = page(Trace(header(steps=2068, program=(long,)), tuple(bulk)), checked=checked)
    assert len(html) < 1_000_000
    assert time.perf_counter() - began < 20
    parsed(html)


def test_a_lane_that_is_cut_off_says_so() -> None:
    assert "the trace holds only the first of its work" in words(page(without(Activity)))
    assert "the trace holds only the first of its work" not in words(page())


def test_coverage_is_the_share_of_each_part() -> None:
    assert coverage([Interval(0, 5), Interval(10, 20)], 0, 20, 4) == pytest.approx([1, 0, 1, 1])
    assert coverage([Interval(-5, 2.5)], 0, 10, 2) == pytest.approx([0.5, 0])
    assert coverage([Interval(0, 1)], 5, 5, 3) == [0, 0, 0]
    assert coverage([Interval(9.9, 10)], 0, 10, 3) == pytest.approx([0, 0, 0.03])


@pytest.mark.parametrize(("value", "step"), [(0.7, 1), (1, 1), (1.3, 2), (3, 5), (6, 10), (0.03, 0.05), (0, 0)])
def test_axes_have_round_numbers(value: float, step: float) -> None:
    assert nice(value) == pytest.approx(step)


def test_numbers_are_written_for_people() -> None:
    assert [percent(value) for value in (None, 0, 0.0004, 0.042, 0.5)] == ["—", "0%", "<\u00a00.1%",
                                                                           "4.2%", "50%"]  # fmt: skip
    assert [times(value) for value in (0, 0.001, 1, 1.25, 1234.5)] == ["0", "<\u00a00.01", "1", "1.25", "1,234"]
    assert [size(value) for value in (10, 2048, 38_535_168)] == ["10\u00a0B", "2.0\u00a0KiB", "36.8\u00a0MiB"]
    assert ms(None) == "—" and ms(1234.5) == "1,234.50\u00a0ms" and len(ms(float("1e300"))) < 20


def test_markup_escapes_all_but_itself() -> None:
    assert tag("a", "<b>", [Markup("<i/>"), ["&"]], title='"', hidden=False, open=True) == (
        '<a title="&quot;" open="">&lt;b&gt;<i/>&amp;</a>'
    )
    assert text("x" * 1000).endswith("x…") and len(text("x" * 1000)) == 400
    assert with_code("use `a<b`") == "use <code>a&lt;b</code>" and with_code("a`b") == "a`b"


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_colours_have_contrast(mode: int) -> None:
    """WCAG 2.2 AA: 4.5 for text, 3 for shapes."""
    blocks = re.findall(r":root \{(.*?)\}", STYLE.read_text("utf-8"), re.DOTALL)
    colours = dict(re.findall(r"--(\w+): (#\w{6});", blocks[mode]))
    for name in ("ink", "soft", "accent"):
        for ground in ("paper", "panel", "faint"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    assert contrast(colours["ink"], colours["mark"]) >= 4.5
    for name in ("busy", "meet", "sync", "loader", "host"):
        for ground in ("paper", "panel"):
            assert contrast(colours[name], colours[ground]) >= 3, (name, ground)


def test_the_style_is_the_one_that_the_policy_allows() -> None:
    html = page()
    style = html.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in html


# The timeline and the lines


def lane_ms(html: str) -> list[float]:
    """The length of each drawn step."""
    return [float(found) for found in re.findall(r"</b> ([\d.]+)\u00a0ms · busy", html)]


def test_the_timeline_has_the_scale_of_the_figures() -> None:
    """A profiled step of 9.5 ms, of which the profiler adds 0.4, is drawn as one of 9.1."""
    html = page()
    assert lane_ms(html) == [9.1, 9.1] and "busy 77%" in words(html)
    shapes = [element for element in parsed(html).iter("rect") if element.get("class") == "free"]
    assert [shape.get("width") for shape in shapes] == ["600", "600"]
    assert ">9.50<" in html, "the figures say what was recorded"


def test_a_clock_keeps_work_and_shortens_the_rest() -> None:
    clock = Clock(100.0, 50.0, [Interval(100, 120), Interval(130, 140)], 0.5)
    assert clock.span == 40
    assert [clock.at(moment) for moment in (90, 100, 110, 120, 125, 130, 140, 150, 160)] == [
        0, 0, 10, 20, 22.5, 25, 35, 40, 40,
    ]  # fmt: skip
    assert Clock(0.0, 0.0, [Interval(0, 5)], 0.5).at(3.0) == 0.0


def test_an_idle_stretch_leads_to_its_line() -> None:
    root = parsed(page())
    lines = [element for element in root.iter("tbody") if (element.get("id") or "").startswith("line")]
    (target,) = [element for element in lines if "train.py:11" in "".join(element.itertext())]
    stretches = [link for lane in root.iter("svg") for link in lane.iter("a")]
    assert len(stretches) == 2 and all(link.get("tabindex") == "-1" for link in stretches)
    labels = [link for link in root.iter("a") if "".join(link.itertext()) == "train.py:11"]
    assert {link.get("href") for link in (*stretches, *labels)} == {f"#{target.get('id')}"} and len(labels) == 2
    ranks = [Recorded("a", replace(TRACE, header=header(rank=at, world_size=2)), NOWHERE) for at in range(2)]
    check_structure(report_page(ranks, "0.1.0"))


def test_lines_that_wait_for_the_same_work_have_one_saving() -> None:
    costs = SyncCost(PRINTED, 0.9, 0.1), SyncCost(replace(ITEM, line=10), 0.7, 0.1), SyncCost(ITEM, 0.3, 0.3)
    tenth = Sync(replace(ITEM, line=10), "implicit", Hits(12))
    said = words(page(replace(TRACE, records=(*RECORDS, tenth, *costs))))
    both = "for the same work. Removing all of these waits saves 1.60 ms."
    assert f"Removing only this wait saves 0.100 ms, because line 10 waits {both}" in said
    assert f"Removing only this wait saves 0.100 ms, because line 12 waits {both}" in said
    assert said.count("Removing only this wait") == 2
    third = replace(ITEM, line=7, file="other.py")
    more = Sync(third, "implicit", Hits(12)), SyncCost(third, 0.4, 0.0)
    said = words(page(replace(TRACE, records=(*RECORDS, tenth, *costs, *more))))
    assert "because lines 12 and other.py:7 wait for the same work" in said and "saves 2.00 ms" in said


RARE = Sync(PRINTED, "implicit", Hits(60, windows=(0, 0, 0, 60)))
ALWAYS = Sync(ITEM, "implicit", Hits(12, windows=(1,) * 12))


def test_waits_of_few_steps_are_not_those_of_every_step() -> None:
    unmeasured = tuple(record for record in RECORDS if not isinstance(record, (Sync, Gap, Idle)))
    steps = replace(
        TRACE, records=(*(each for each in unmeasured if not getattr(each, "profiled", False)), RARE, ALWAYS)
    )
    facts = gather(steps)
    assert [(line.line, line.steps, line.is_rare) for line in facts.lines] == [(11, None, False), (12, 1, True)]
    said = words(page(steps))
    assert "1 wait for the GPU per step. Their cost was not measured. 1 more line waits only in a few steps." in said
    assert "5 in 1 of 12 steps" in said
    late = replace(RARE, hits=Hits(60, windows=(*(0,) * 12, 60)))
    assert "5 after the last of 12 steps" in words(page(replace(steps, records=(*steps.records[:-2], late, ALWAYS))))
    costly = replace(TRACE, records=(*unmeasured, RARE, ALWAYS, SyncCost(ITEM, 1.0, 1.0), SyncCost(PRINTED, 2.0, 2.0)))
    assert "1 line costs 1.00 ms (11%) of every step." in words(page(costly))
    assert "Start with train.py:11. 1 more line waits only in a few steps." in words(page(costly))


def test_the_navigation_is_short_and_the_rest_is_folded() -> None:
    root = parsed(page(checked=Checked((finding(Ruling.CONFIRMED),))))
    navigation = next(root.iter("nav"))
    assert ["".join(link.itertext()) for link in navigation.iter("a")] == [
        "Overview", "Waits", "Findings", "Experiments", "Timeline", "Work on the GPU", "Details",
    ]  # fmt: skip
    folded = [element for element in root.iter("section") if element.get("id") == "details"]
    titles = ["".join(each.find("summary").itertext()) for each in folded[0].findall("details")]  # type: ignore[union-attr]
    assert titles == ["All recorded steps", "Allowed waits", "Copies of pageable memory", "Compilation", "Memory",
                      "Modules"]  # fmt: skip


def test_a_simulated_page_names_the_command_for_a_gpu_and_shows_its_snippets() -> None:
    simulated = replace(without(Activity, Idle, Gap), header=header(simulated=True, devices=(), root="/project"))
    html = page(simulated)
    assert "4 waits for the GPU per step. Their cost was not measured." in words(html)
    assert "run this on a GPU next: perflint trace train.py --epochs 1 ." in words(html)
    lines = next(element for element in parsed(html).iter("section") if element.get("id") == "lines")
    assert all(each.get("open") is not None for each in lines.iter("details"))
    module = replace(simulated, header=replace(simulated.header, program=("-m", "pack age", "/project/a.yaml")))
    assert "perflint trace -m 'pack age' a.yaml" in words(page(module))


def test_few_lines_are_open_whatever_they_cost() -> None:
    def is_open(trace: Trace) -> list[bool]:
        lines = next(element for element in parsed(page(trace)).iter("section") if element.get("id") == "lines")
        return [each.get("open") is not None for each in lines.iter("details")]

    assert is_open(TRACE) == [True, True]
    more = [Sync(replace(ITEM, line=line), "implicit", Hits(12)) for line in (4, 5, 6)]
    assert is_open(replace(TRACE, records=(*RECORDS, *more))) == [True, False, False, False, False]


def test_findings_without_a_verdict_say_what_would_give_one() -> None:
    fix = Fix("Pass `bias=False`", Safety.RISKY, ())
    bias = finding(code="TPF301", effect=Effect.COMPUTE, span=Span(4, 1, 4, 9), help="Pass `bias=False`.", fix=fix)
    said = words(page(checked=Checked((bias, replace(bias, code="TPF209"), finding(span=Span(3, 1, 3, 9))))))
    assert said.count("perflint trace --experiments times the program with and without it") == 1
    assert said.count("perflint verify compares the program with and without the fix") == 1
    assert "the trace has no record of this line. Trace more steps" in said
    assert said.count("What to do: Pass bias=False .") == 2
    assert "perflint fix --select TPF301 --risky-fixes --apply" in said and "fix --trace" not in said


def test_the_command_of_a_fix_names_the_traces() -> None:
    fixed = finding(Ruling.CONFIRMED, fix=Fix("Read it later", Safety.UNSAFE, ()))
    said = words(page(checked=Checked((fixed,), traces=("a.gz", "my runs/b.gz"))))
    assert "perflint fix --trace a.gz --trace 'my runs/b.gz' --unsafe-fixes --apply" in said


def test_the_codes_of_experiments_are_those_that_are_tried() -> None:
    import perflint.tracer.experiments as package

    folder = Path(package.__file__).parent
    named = set(re.findall(r'"(TPF\d+)"', "".join(path.read_text("utf-8") for path in folder.glob("*.py"))))
    assert named == EXPERIMENT_CODES


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>", "normalization"),
        ("void cudnn::engines_precompiled::nchwToNhwcKernel<float>", "layout conversions"),
        ("sm90_xmma_dgrad_implicit_gemm_indexed_tf32f32", "convolutions"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32", "matrix products"),
        ("void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>", "optimizer"),
        ("Memcpy HtoD (Pageable -> Device)", "copies and fills"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "collectives"),
        ("void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>", "element by element"),
        ("my_own_kernel", "other kernels"),
    ],
)
def test_kernels_have_a_kind(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_work_is_grouped_by_kind_and_layout_conversions_have_a_hint() -> None:
    work = [Kernel("nchwToNhwcKernel", "kernel", 4, 2.0), Kernel("xmma_gemm", "kernel", 2, 8.0)]
    others = tuple(record for record in RECORDS if not isinstance(record, Kernel))
    html = page(replace(TRACE, records=(*others, *work)))
    said = words(html)
    assert "20% of the work converts layouts of tensors. channels_last may avoid it" in said
    assert "<code>perflint trace --experiments</code>" in html
    assert said.index("matrix products 4.000 80% 1") < said.index("layout conversions 1.000 20% 2")
    assert "converts layouts" not in words(page())
