"""Findings of the linter with what the traces say of them, and experiments with their spreads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from math import log

from perflint.findings import Effect, Finding, Ruling, Verdict
from perflint.output.report.checked import Checked, cure
from perflint.output.report.facts import Facts, finite
from perflint.output.report.lines import place_name
from perflint.output.report.markup import Markup, join, tag, text, with_code
from perflint.output.report.numbers import factor, ms, percent, plain, times
from perflint.output.report.parts import Column, Names, Section, head, left_out, note, section
from perflint.output.summary import count
from perflint.tracer.events import Experiment
from perflint.tracer.verdicts import EXPERIMENT_CODES

SHOWN = 60
"""Findings."""
EXPERIMENTS = 40
_SIGNS = {
    Ruling.CONFIRMED: "●",
    Ruling.NO_COST: "○",
    Ruling.REFUTED: "✕",
    Ruling.NOT_EXECUTED: "–",
    Ruling.UNDECIDED: "?",
}
_FREE = (Ruling.NO_COST, Ruling.REFUTED, Ruling.NOT_EXECUTED)
_WIDEST = 1.25
"""The least span of the scale of ratios, to both sides of 1."""


_TITLE = "Findings of the linter"
_SHORT = "Findings"
_COLUMNS = (
    Column("Finding"),
    Column("Verdict"),
    Column("ms/step", True, "milliseconds per step"),
    Column("of step", True, "share of the step"),
)


def verdicts(checked: Checked | None, elsewhere: Collection[Finding] = ()) -> Section | None:
    """The table of verdicts, without the findings that are shown elsewhere; None if nothing was checked."""
    if checked is None:
        return None
    left = [finding for finding in checked.findings if finding not in elsewhere]
    notes = []
    if checked.stale:
        files = ", ".join(checked.shown(path) for path in checked.stale[:3])
        files += " …" if len(checked.stale) > 3 else ""
        notes.append(note(f"{files}. Lines that are the same were found again.", "Source changed since the trace"))
    notes += [note(problem, "Not checked") for problem in checked.unread[:5]]
    shown = left[:SHOWN]
    if not checked.findings:
        lead = tag("p", "The linter finds nothing in the traced code.")
        return section(Names(""), "verdicts", _TITLE, lead, notes, short=_SHORT)
    lead = tag("p", _counted(checked.findings), class_="lead")
    if len(left) < len(checked.findings):
        lead = join(lead, tag("p", "Findings on lines that wait are shown with these lines.", class_="lead"))
    if not shown:
        return section(Names(""), "verdicts", _TITLE, lead, notes, short=_SHORT)
    caption = tag("caption", "Findings, and what the trace says of them", class_="hidden")
    is_timed = any(each.verdict is not None and each.verdict.ms is not None for each in shown)
    columns = _COLUMNS if is_timed else _COLUMNS[:2]
    rows = [_finding(each, checked, is_timed) for each in shown]
    return section(
        Names(""),
        "verdicts",
        _TITLE,
        lead,
        tag("table", caption, head(columns), rows, class_="lines verdicts"),
        left_out(len(left) - len(shown), "findings are"),
        notes,
        short=_SHORT,
    )


def _counted(findings: Sequence[Finding]) -> str:
    rulings = Counter(finding.verdict.ruling for finding in findings if finding.verdict is not None)
    parts = [f"{rulings[ruling]} {ruling.value}" for ruling in Ruling if rulings[ruling]]
    silent = len(findings) - rulings.total()
    parts += [f"{silent} without a verdict"] if silent else []
    return f"{count(len(findings), 'finding')}: {'; '.join(parts)}."


def _finding(finding: Finding, checked: Checked, is_timed: bool) -> Markup:
    verdict = finding.verdict
    rule = tag("small", tag("code", finding.code), " ", finding.name)
    place = place_name(checked.shown(finding.path), finding.span.line)
    figures = (plain(verdict.ms if verdict else None, 3), percent(verdict.share if verdict else None))
    cells = [tag("td", figure, class_="number") for figure in figures] if is_timed else []
    row = tag("tr", tag("th", place, rule, scope="rowgroup"), tag("td", _ruling(verdict)), cells)
    is_open = verdict is None or verdict.ruling is Ruling.UNDECIDED
    said = f"The trace: {verdict.why}." if verdict else "No verdict: the trace has no record of this line."
    why = tag("p", with_code(f"{said} {_command(finding)}" if is_open else said), class_="callers")
    message = tag("p", with_code(finding.message), class_="message")
    is_free = verdict is not None and verdict.ruling in _FREE
    wide = tag("tr", tag("td", message, why, cure(finding, checked.traces), colspan=2 + len(cells)))
    return tag("tbody", row, wide, class_="free-line" if is_free else None)


def _ruling(verdict: Verdict | None) -> Markup:
    if verdict is None:
        return tag("span", "no verdict", class_="ruling")
    return join(tag("span", f"{_SIGNS[verdict.ruling]} ", aria_hidden="true", class_="sign"), verdict.ruling.value)


def _command(finding: Finding) -> str:
    """The command that may give a verdict on a finding that has none."""
    if finding.effect is Effect.SYNC:
        return "Trace more steps, or the changed code again."
    if finding.code in EXPERIMENT_CODES:
        return "`perflint trace --experiments` times the program with and without it."
    return "`perflint verify` compares the program with and without the fix."


_TRIED = (
    Column("Change"),
    Column("faster by", True, "faster by the factor"),
    Column("saves ms/step", True, "saves, in milliseconds per step"),
)


def experiments(facts: Facts, names: Names) -> Section | None:
    """Changes that were timed before and after."""
    tried = sorted(facts.trace.of(Experiment), key=lambda each: -finite(each.saved_ms))
    if not tried:
        return None
    shown = tried[:EXPERIMENTS]
    reach = max(_WIDEST, *(max(_bounded(each.high), 1 / _bounded(each.low)) for each in shown))
    caption = tag("caption", "Changes, timed before and after", class_="hidden")
    lead = (
        "Timed on the device with the shapes and types of the program, before and after in turn. "
        "The bar is the spread of the repeats, the mark on it their median; the line is where nothing changes."
    )
    return section(
        names,
        "experiments",
        "Experiments",
        tag("p", lead, class_="lead"),
        tag("table", caption, head(_TRIED), [_experiment(each, reach) for each in shown], class_="lines tried"),
        left_out(len(tried) - len(shown), "experiments are"),
    )


def _experiment(each: Experiment, reach: float) -> Markup:
    place = place_name(each.place.file, each.place.line) if each.place else each.scope
    codes = " ".join(each.codes[:4]) or each.name
    row = tag(
        "tr",
        tag("th", tag("span", each.change, class_="place"), tag("small", codes, " · ", place), scope="rowgroup"),
        tag(
            "td",
            f"{factor(each.ratio)}\u00a0×",
            tag("small", f"{factor(each.low)} – {factor(each.high)}"),
            class_="number",
        ),
        tag("td", plain(each.saved_ms, 3), class_="number"),
    )
    details = tag("td", _spread(each, reach), tag("p", _told(each), class_="callers"), colspan=len(_TRIED))
    within = each.low <= 1 <= each.high
    return tag("tbody", row, tag("tr", details), class_="free-line" if within else None)


def _told(each: Experiment) -> Markup:
    shapes = ", ".join(" × ".join(map(str, shape[:8])) or "scalar" for shape in each.shapes[:4])
    parts = [
        f"{each.scope} ",
        tag("code", text(each.subject, 160)),
        f" of {shapes} in {each.dtype}" if shapes else f" in {each.dtype}",
        f": {ms(each.before_ms, 3)} before, {ms(each.after_ms, 3)} after ({count(each.repeats, 'repeat')}, ",
        f"{times(each.calls_per_step)} a step)",
    ]
    if each.difference is not None:
        much = f"differ by {finite(each.difference):.2g} of the largest" if each.difference else "are equal"
        parts.append(f"; outputs {much}")
    if not each.device.startswith("cuda"):
        parts.append(f"; on the {each.device}, not on a GPU")
    return join(parts, f"; {each.note}." if each.note else ".")


def _spread(each: Experiment, reach: float) -> Markup:
    """Low, median and high on a scale of logarithms; the numbers are beside it."""
    low, middle, high = (_at(value, reach) for value in (each.low, each.ratio, each.high))
    shapes = (
        tag("rect", x="0%", y=7, width="100%", height=1, class_="base-line"),
        tag("rect", x="50%", y=0, width=1, height=15, class_="one"),
        tag("rect", x=f"{low:.2f}%", y=4, width=f"{max(high - low, 0.3):.2f}%", height=7, class_="range"),
        tag("rect", x=f"{middle:.2f}%", y=2, width=3, height=11, class_="middle"),
    )
    return tag("svg", shapes, class_="spread", aria_hidden="true")


def _at(value: float, reach: float) -> float:
    """The place of a ratio on the scale, in percent: 1 in the middle, `reach` at the end."""
    return 50 + 49 * log(_bounded(value)) / log(reach)


def _bounded(value: float) -> float:
    return min(max(finite(value), 0.01), 100.0)
