"""What people read."""

from __future__ import annotations

import io

import pytest

from perflint.config.settings import OutputFormat
from perflint.findings import Effect, Finding, Heat, Problem, Report, Ruling, Safety, Severity, Span, Verdict
from perflint.output.costliest import costliest_text
from perflint.output.formats import writer
from perflint.output.summary import summary_text
from perflint.output.terminal import Style, columns, printable, wants_colours, width, wrapped
from perflint.output.writer import Output, message_text, problem_text
from perflint.source.text import Source
from tests.output.reports import FINDINGS, SILENCED, SOURCE, finding, fix, report

PLAIN = Style(False)
SUMMARY = """\
Found 3 findings in 12 files: 1 error, 1 warning, 1 info.
[*] 1 fixable with `perflint fix --apply`, [~] 1 more with `--unsafe-fixes`.
2 silenced by comments; 1 in the baseline; `--profile pedantic` would add 4; `--profile audit` would add 30.
"""
FULL = """\
warning[TPF101] [*] `.item()` waits for the device
 --> src/train.py:2:11
  |
2 |     total += model(batch).item()
  |              ^^^^^^^^^^^^^^^^^^^ scalar-read-in-loop
  = help: Read it once, after the loop
  = fix (safe): Accumulate on the device

error[TPF102] [~] `.item()` waits for the device
 --> src/train.py:3:21
  |
3 |     name = 'größe', y.item()
  |                     ^^^^^^^^ other-rule
  = fix (unsafe, needs `--unsafe-fixes`): Accumulate on the device

info[TPF102] `.item()` waits for the device
 --> src/train.py:4:9
  |
4 |     z = f(
  |         ^^... other-rule
  = fix (by hand): Accumulate on the device

"""
CONCISE = """\
src/train.py:2:11: TPF101 [*] `.item()` waits for the device
src/train.py:3:21: TPF102 [~] `.item()` waits for the device
src/train.py:4:9: TPF102 `.item()` waits for the device
"""
GROUPED = """\
src/train.py:
  2:11 TPF101 [*] `.item()` waits for the device
  3:21 TPF102 [~] `.item()` waits for the device
  4:9  TPF102 `.item()` waits for the device

"""
STATISTICS = """\
2  TPF102  [~]  other-rule
1  TPF101  [*]  scalar-read-in-loop

"""


def written(format: OutputFormat, part: Report, style: Style = PLAIN, statistics: bool = False) -> str:
    """What a writer writes of a report that is one file's."""
    out = io.StringIO()
    to = writer(format, Output(out, style, statistics=statistics))
    to.file(SOURCE, part)
    to.finish(part)
    return out.getvalue()


def test_full() -> None:
    assert written(OutputFormat.FULL, report()) == FULL + SUMMARY


def test_concise() -> None:
    assert written(OutputFormat.CONCISE, report()) == CONCISE + SUMMARY


def test_the_summary_of_concise_is_a_note() -> None:
    """Editors take each line of standard output for a finding."""
    out, notes = io.StringIO(), io.StringIO()
    to = writer(OutputFormat.CONCISE, Output(out, PLAIN, notes))
    to.file(SOURCE, report())
    to.finish(report())
    assert (out.getvalue(), notes.getvalue()) == (CONCISE, SUMMARY)


def test_grouped() -> None:
    assert written(OutputFormat.GROUPED, report()) == GROUPED + SUMMARY


def block(out: io.StringIO, source: Source, report: Report) -> None:
    """Write the findings of one file, without a summary."""
    to = writer(OutputFormat.FULL, Output(out, PLAIN, quiet=True))
    to.file(source, report)
    to.finish(report)


GROUP = [
    finding(Span(2, 11, 2, 16), group="a", help="Do it once", cost="It costs 3%.", why="because"),
    finding(Span(2, 19, 2, 24), group="a", help="Do it once", cost="It costs 3%.", why="because"),
    finding(Span(4, 9, 4, 10), group="a", help="Do it once", cost="It costs 3%."),
    finding(Span(6, 5, 6, 6), help="Do it once", cost="It costs 3%."),
]
BLOCKS = """\
warning[TPF101] `.item()` waits for the device (3 places)
 --> src/train.py:2:11
  |
2 |     total += model(batch).item()
  |              ^^^^^   ^^^^^ scalar-read-in-loop
...
4 |     z = f(
  |         ^
  = why: because
  = help: Do it once
  = cost: It costs 3%.

warning[TPF101] `.item()` waits for the device
 --> src/train.py:6:5
  |
6 |     )
  |     ^ scalar-read-in-loop
  = help: as for line 2
  = cost: as for line 2

"""


def test_the_ranking_comes_before_the_findings() -> None:
    out = io.StringIO()
    found = [finding(Span(line, 1, line, 2), function=name) for line, name in ((1, "f"), (2, "f"), (3, "g"), (4, "g"))]
    to = writer(OutputFormat.FULL, Output(out, PLAIN))
    to.file(SOURCE, Report(found))
    to.finish(Report(found, files=1))
    assert out.getvalue().startswith("Most costly first:\n") and out.getvalue().count("Most costly") == 1


def test_the_lines_of_the_ranking_are_those_of_its_findings() -> None:
    cold = [finding(Span(line, 1, line, 9), function="f", heat=Heat.WARM) for line in (2, 3)]
    others = [finding(Span(line, 1, line, 9), function="g", heat=Heat.WARM) for line in (4, 5)]
    hot = finding(Span(1, 1, 1, 9), "TPF603", function="f", effect=Effect.COMPUTE, heat=Heat.HOT)
    assert "other-rule in `f` (line 1)\n" in costliest_text([hot, *cold, *others], PLAIN)


def test_a_group_is_one_block_and_help_and_cost_are_said_once() -> None:
    out = io.StringIO()
    block(out, SOURCE, Report(GROUP))
    assert out.getvalue() == BLOCKS


def test_other_formats_have_a_line_for_each_place() -> None:
    assert len(written(OutputFormat.CONCISE, Report(GROUP)).splitlines()) == 5


def test_what_is_in_a_group_and_has_another_fix_is_shown_by_itself() -> None:
    out = io.StringIO()
    other = finding(Span(3, 21, 3, 29), group="a", help="Do it once", fix=fix(Safety.SAFE))
    block(out, SOURCE, Report([*GROUP[:3], other]))
    assert out.getvalue().count("warning[TPF101]") == 2


def test_places_that_do_not_fit_are_named() -> None:
    out = io.StringIO()
    source = Source("a.py", "x.item()\n" * 9)
    found = [finding(Span(line, 1, line, 9), group="a") for line in (1, 2, 3, 5, 8, 9)]
    block(out, source, Report(found))
    assert "  = also on lines 5, 8 and 9\n" in out.getvalue()


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_text_wraps_in_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    long = finding(Span(2, 11, 2, 16), message="word " * 40, help="word " * 40, why="word " * 40)
    out, piped = Terminal(), io.StringIO()
    block(out, SOURCE, Report([long]))
    block(piped, SOURCE, Report([long]))
    assert max(map(len, out.getvalue().splitlines())) <= 60
    assert out.getvalue().split() == piped.getvalue().split()
    assert max(map(len, piped.getvalue().splitlines())) > 150


@pytest.mark.parametrize(("told", "expected"), [("60", 60), ("1", 40), ("0", None), ("²", None), ("9" * 5000, None)])
def test_columns_that_the_environment_states(monkeypatch: pytest.MonkeyPatch, told: str, expected: int | None) -> None:
    monkeypatch.setenv("COLUMNS", told)
    # Its descriptor is none, so the size of the terminal is unknown.
    assert columns(Terminal()) == expected


@pytest.mark.parametrize("room", range(20, 60))
def test_numbers_stay_with_their_units(room: int) -> None:
    lines = wrapped("it costs training about 9%, and makes it 1.5 × slower, by 12 ms", room, 3, 4)
    assert not any(line.endswith((" 9", "1.5", "12")) for line in lines)


# What costs most


def test_the_costliest_come_first() -> None:
    hot = [finding(Span(line, 1, line, 9), function="step") for line in (1, 2)]
    warm = [finding(Span(line, 1, line, 9), function="f", heat=Heat.WARM) for line in (3, 4, 5)]
    other = [finding(Span(6, 1, 6, 9), "TPF351", effect=Effect.COMPUTE)]
    assert costliest_text([*warm, *hot, *other], PLAIN) == (
        "Most costly first:\n"
        "  src/train.py: 2 waits per step in `step` (lines 1 and 2)\n"
        "  src/train.py: other-rule (line 6)\n"
        "  src/train.py: 3 waits per call in `f` (lines 3, 4 and 5)\n\n"
    )


def test_measured_time_comes_before_guesses() -> None:
    verdict = Verdict(Ruling.CONFIRMED, "seen", ms=1.25)
    found = [finding(Span(1, 1, 1, 9), function="f", severity=Severity.ERROR)] * 3
    found.append(finding(Span(2, 1, 2, 9), function="g", severity=Severity.INFO, verdict=verdict))
    first = costliest_text(found, PLAIN).splitlines()[1]
    assert first == "  src/train.py: 1 wait per step in `g` (line 2), 1.25 ms of each step"


def test_findings_at_one_place_share_its_time() -> None:
    verdict = Verdict(Ruling.CONFIRMED, "seen", ms=1.25)
    span = Span(1, 5, 1, 9)
    found = [finding(span, code, function="f", verdict=verdict) for code in ("TPF101", "TPF102")]
    found.append(finding(Span(1, 1, 1, 9), "TPF601", function="f", effect=Effect.COMPUTE, verdict=verdict))
    found += [finding(Span(line, 1, line, 9), function="g", verdict=verdict) for line in (2, 3)]
    assert costliest_text(found, PLAIN) == (
        "Most costly first:\n"
        "  src/train.py: 2 waits per step in `g` (lines 2 and 3), 2.5 ms of each step\n"
        "  src/train.py: 1 wait per step and other-rule in `f` (line 1), 1.25 ms of each step\n\n"
    )


def test_at_most_five_lines_and_none_for_few_findings() -> None:
    found = [finding(Span(line, 1, line, 9), function=f"f{line}") for line in range(1, 20)]
    assert len(costliest_text(found, PLAIN).splitlines()) == 7
    assert costliest_text(found[:3], PLAIN) == ""


@pytest.mark.parametrize("format", [OutputFormat.FULL, OutputFormat.CONCISE, OutputFormat.GROUPED])
def test_statistics(format: OutputFormat) -> None:
    assert written(format, report(), statistics=True) == STATISTICS + SUMMARY


@pytest.mark.parametrize("format", [OutputFormat.FULL, OutputFormat.CONCISE, OutputFormat.GROUPED])
@pytest.mark.parametrize("statistics", [False, True])
def test_colours_change_nothing_but_colours(format: OutputFormat, statistics: bool) -> None:
    coloured = written(format, report(), Style(True), statistics)
    assert "\x1b[" in coloured
    plain = coloured
    while "\x1b[" in plain:
        start = plain.index("\x1b[")
        plain = plain[:start] + plain[plain.index("m", start) + 1 :]
    assert plain == written(format, report(), statistics=statistics)


def excerpt(line: str, start: int, end: int) -> list[str]:
    """The two lines that show a stretch of a line."""
    out = io.StringIO()
    source = Source("a.py", line)
    block(out, source, Report([finding(Span(1, start, 1, end))]))
    return [shown.partition("| ")[2] for shown in out.getvalue().splitlines()[3:5]]


EXCERPTS = [
    ("x.item()\n", 1, 9, ["x.item()", "^^^^^^^^ scalar-read-in-loop"]),
    ("\t\tx = y\r\n", 7, 8, ["        x = y", "            ^ scalar-read-in-loop"]),
    ("a = '漢字', x\n", 12, 13, ["a = '漢字', x", "            ^ scalar-read-in-loop"][:1]),
    ("a = 'e\u0301', x\n", 11, 12, ["a = 'e\\u0301', x"]),
    ("", 1, 1, ["", "^ scalar-read-in-loop"]),
    ("a = '\x1b[31m', x\n", 13, 14, ["a = '\\x1b[31m', x", "               ^ scalar-read-in-loop"]),
]


@pytest.mark.parametrize(("line", "start", "end", "expected"), EXCERPTS)
def test_excerpts(line: str, start: int, end: int, expected: list[str]) -> None:
    shown = excerpt(line, start, end)
    if len(expected) == 1:
        expected = [shown[0], shown[1]]
    assert shown == expected


def test_carets_stand_below_wide_characters() -> None:
    code, caret = excerpt("a = '漢字', x\n", 11, 12)
    assert code == "a = '漢字', x"
    assert caret.index("^") == width("a = '漢字', ")


@pytest.mark.parametrize("start", [1, 50, 99, 100, 101, 5_000, 99_990])
def test_long_lines_are_clipped_around_the_place(start: int) -> None:
    line = "".join(f"{index:010}" for index in range(10_000))
    code, caret = excerpt(line, start, start + 8)
    assert len(code) < 260
    at = caret.index("^")
    assert code[at : at + 8] == line[start - 1 : start + 7]


def test_a_long_stretch_is_clipped() -> None:
    code, caret = excerpt("x" * 10_000, 1, 10_001)
    assert len(code) < 260 and len(caret) < 260


def test_a_finding_behind_the_end_of_the_file_shows_no_line() -> None:
    out = io.StringIO()
    block(out, Source("a.py", ""), Report([finding(Span(7, 1, 7, 2))]))
    assert "a.py" not in out.getvalue() and ":7:1\n" in out.getvalue()


def test_a_line_of_statistics_shows_the_safest_fix() -> None:
    assert written(OutputFormat.FULL, Report([RISKY, FINDINGS[0]], files=1), statistics=True).startswith(
        "2  TPF101  [*]"
    )
    assert written(OutputFormat.FULL, Report([RISKY], files=1), statistics=True).startswith("1  TPF101  [!]")


def test_a_risky_fix_is_marked_and_names_its_option() -> None:
    text = written(OutputFormat.FULL, Report([RISKY], files=1))
    assert "warning[TPF101] [!] `.item()`" in text
    assert "= fix (risky, needs `--risky-fixes`): Accumulate on the device" in text


RISKY = finding(Span(2, 11, 2, 30), fix=fix(Safety.RISKY))
SUMMARIES = [
    (Report(files=1), "No findings in 1 file.\n"),
    (Report(files=0), "No findings in 0 files.\n"),
    (
        Report(FINDINGS[:1], files=2),
        "Found 1 finding in 2 files: 1 warning.\n[*] 1 fixable with `perflint fix --apply`.\n",
    ),
    (
        Report([FINDINGS[1]] * 2, files=2),
        "Found 2 findings in 2 files: 2 errors.\n[~] 2 fixable with `--unsafe-fixes`.\n",
    ),
    (
        Report([RISKY, *FINDINGS], files=2),
        "Found 4 findings in 2 files: 1 error, 2 warnings, 1 info.\n[*] 1 fixable with `perflint fix --apply`, "
        "[~] 1 more with `--unsafe-fixes`, [!] 1 with `--risky-fixes`.\n",
    ),
    (
        Report([RISKY, FINDINGS[0]], files=2),
        "Found 2 findings in 2 files: 2 warnings.\n[*] 1 fixable with `perflint fix --apply`, "
        "[!] 1 more with `--risky-fixes`.\n",
    ),
    (Report([RISKY], files=2), "Found 1 finding in 2 files: 1 warning.\n[!] 1 fixable with `--risky-fixes`.\n"),
    (Report([FINDINGS[2]], files=2), "Found 1 finding in 2 files: 1 info.\n"),
    (Report(files=1, silenced=SILENCED[:1]), "No findings in 1 file.\n1 silenced by comments.\n"),
    (
        Report(files=1, hidden={"pedantic": 0, "audit": 3}),
        "No findings in 1 file.\n`--profile audit` would add 3.\n",
    ),
    (
        Report(files=1, hidden={"pedantic": 3, "audit": 3}),
        "No findings in 1 file.\n`--profile pedantic` would add 3.\n",
    ),
]


@pytest.mark.parametrize(("part", "expected"), SUMMARIES)
def test_summaries(part: Report, expected: str) -> None:
    assert summary_text(part, PLAIN) == expected


PROBLEMS = [
    (Problem("a.py", "bad", "help", 3, 7), "error: a.py:3:7: bad\n  help: help\n"),
    (Problem("a.py", "bad", line=3), "error: a.py:3: bad\n"),
    (Problem("a.py", "bad"), "error: a.py: bad\n"),
    (Problem("", "bad"), "error: bad\n"),
    (Problem("a\x1b.py", "bad\x07"), "error: a\\x1b.py: bad\\x07\n"),
]


@pytest.mark.parametrize(("problem", "expected"), PROBLEMS)
def test_problems(problem: Problem, expected: str) -> None:
    assert problem_text(problem, PLAIN) == expected


def test_warnings() -> None:
    assert message_text("warning", "empty", None, PLAIN) == "warning: empty\n"


def test_what_could_drive_a_terminal_is_escaped() -> None:
    evil = finding(Span(1, 1, 1, 2), path="a\x1b[2J.py", message="\x1b]0;x\x07", help="\r\x9b", fix=fix(Safety.SAFE))
    for format in (OutputFormat.FULL, OutputFormat.CONCISE):
        text = written(format, Report([evil]))
        assert not any(character in text for character in "\x1b\x07\r\x9b")


def test_printable_keeps_what_is() -> None:
    assert printable("größe 漢字 ×") == "größe 漢字 ×"
    assert printable("a\tb\u2028\x00") == "a\\tb\\u2028\\x00"


class Stream(io.StringIO):
    """A stream that is or is not a terminal."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


COLOURS = [
    ("auto", True, {}, True),
    ("auto", False, {}, False),
    ("always", False, {}, True),
    ("always", False, {"NO_COLOR": "1"}, True),
    ("never", True, {"FORCE_COLOR": "1"}, False),
    ("auto", True, {"NO_COLOR": "1"}, False),
    ("auto", True, {"NO_COLOR": ""}, True),
    ("auto", True, {"TERM": "dumb"}, False),
    ("auto", False, {"FORCE_COLOR": "1"}, True),
    ("auto", False, {"FORCE_COLOR": "0"}, False),
    ("auto", False, {"CLICOLOR_FORCE": "1"}, True),
    ("auto", False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
]


@pytest.mark.parametrize(("choice", "terminal", "environment", "expected"), COLOURS)
def test_who_gets_colours(
    monkeypatch: pytest.MonkeyPatch, choice: str, terminal: bool, environment: dict[str, str], expected: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_colours(choice, Stream(terminal)) is expected


def test_every_finding_is_written_once() -> None:
    findings: list[Finding] = [finding(Span(line, 1, line, 2)) for line in (1, 2, 3)]
    assert written(OutputFormat.CONCISE, Report(findings)).count("TPF101") == 3
