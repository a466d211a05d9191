"""The chart of all recorded steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from perflint.output.report.facts import Facts, finite
from perflint.output.report.markup import Markup, join, tag
from perflint.output.report.numbers import ms, plain
from perflint.output.report.overview import swatch
from perflint.output.report.parts import Column, Names, Section, details, section, table
from perflint.tracer.events import Step

BARS = 160
"""Steps, or groups of them."""


@dataclass(frozen=True, slots=True)
class _Bar:
    """Steps that follow each other."""

    first: int
    last: int
    ms: float
    profiled: bool

    @property
    def name(self) -> str:
        return f"{self.first}" if self.first == self.last else f"{self.first}–{self.last}"


def step_times(facts: Facts, names: Names) -> Section | None:
    """How long each recorded step took."""
    steps = facts.trace.of(Step)
    if len(steps) < 2 or facts.step_ms is None:
        return None
    bars = _bars(steps)
    top = min(3 * facts.step_ms, 1.15 * max(bar.ms for bar in bars)) or 1.0
    cut = [bar for bar in bars if bar.ms > top]
    name = names.id("times")
    svg = tag(
        "svg",
        tag("title", "Time of each recorded step", id=f"{name}-title"),
        tag("desc", _summary(steps, bars), id=f"{name}-desc"),
        [_bar(bar, number, top) for number, bar in enumerate(bars)],
        tag("line", x1=0, x2=10 * len(bars), y1=_y(facts.step_ms, top), y2=_y(facts.step_ms, top), class_="median"),
        viewBox=f"0 0 {10 * len(bars)} 108",
        preserveAspectRatio="none",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        class_="times",
    )
    columns = [Column("Steps"), Column("ms", True), Column("profiler")]
    rows = [(bar.name, plain(bar.ms), "on" if bar.profiled else "off") for bar in bars]
    figures = table("Recorded steps", columns, rows, is_caption_hidden=True, class_="narrow")
    return section(
        names,
        "steps",
        "All recorded steps",
        tag("p", _summary(steps, bars), class_="lead"),
        tag("ul", _legend(bars, cut), class_="legend"),
        svg,
        tag("p", tag("span", f"step {bars[0].name}"), tag("span", f"step {bars[-1].name}"), class_="ends"),
        details("The figures as a table", figures),
    )


def _legend(bars: Sequence[_Bar], cut: Sequence[_Bar]) -> list[Markup]:
    items = [tag("li", swatch("plain"), "without the profiler")]
    if any(bar.profiled for bar in bars):
        items.append(tag("li", swatch("watched"), "with the profiler, underlined"))
    items.append(tag("li", swatch("middle-line", 2), "median"))
    if cut:
        told = ", ".join(f"{bar.name} ({ms(bar.ms, 0)})" for bar in cut[:4]) + (" …" if len(cut) > 4 else "")
        items.append(tag("li", f"cut off: step {told}"))
    return items


def _bars(steps: Sequence[Step]) -> list[_Bar]:
    """At most `BARS` of them; profiled steps are not mixed with others."""
    each = -(-len(steps) // BARS)
    bars: list[_Bar] = []
    for at in range(0, len(steps), each):
        for profiled in (False, True):
            group = [step for step in steps[at : at + each] if step.profiled is profiled]
            if group:
                last = group[-1].index + group[-1].count - 1
                mean = finite(sum(step.ms * step.count for step in group) / max(sum(s.count for s in group), 1))
                bars.append(_Bar(group[0].index, last, max(mean, 0.0), profiled))
    return bars


def _summary(steps: Sequence[Step], bars: Sequence[_Bar]) -> str:
    times = [finite(step.ms) for step in steps if not step.profiled] or [finite(step.ms) for step in steps]
    shortest, longest = min(times), max(times)
    grouped = " Bars are means of steps that follow each other." if len(bars) < len(steps) else ""
    return f"Median {ms(median(times))}, shortest {ms(shortest)}, longest {ms(longest)}.{grouped}"


def _y(value: float, top: float) -> float:
    return round(100 - 100 * min(max(value, 0.0) / top, 1.0), 2)


def _bar(bar: _Bar, number: int, top: float) -> Markup:
    height = _y(bar.ms, top)
    profiled = ", with the profiler" if bar.profiled else ""
    title = tag("title", f"Step {bar.name}: {ms(bar.ms)}{profiled}")
    kind = "watched" if bar.profiled else "plain"
    shape = tag("rect", title, x=10 * number + 1, y=height, width=8, height=round(100 - height, 2), class_=kind)
    if bar.profiled:
        shape = join(shape, tag("rect", x=10 * number + 1, y=103, width=8, height=5, class_="watched"))
    if bar.ms > top:
        shape = join(shape, tag("rect", x=10 * number, y=6, width=10, height=4, class_="cut"))
    return shape
