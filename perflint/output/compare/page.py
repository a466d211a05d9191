"""A comparison of two traces as a page."""

from __future__ import annotations

from collections.abc import Sequence

from perflint.output.compare.comparison import Comparison, LinePair
from perflint.output.compare.text import figures, headline, notes, place, step_rows
from perflint.output.report.facts import Facts, finite
from perflint.output.report.markup import Content, Markup, breakable, join, tag
from perflint.output.report.numbers import ms
from perflint.output.report.overview import CAUSES, parts_of, split_bar, swatch
from perflint.output.report.parts import Column, Names, Section, left_out, note, section, table
from perflint.output.report.shell import whole_page

_MOST = 100
"""Rows of each table."""
_PAIR = (Column("before", True), Column("after", True), Column("change", True))
_NAMES = Names("")
_LINES = (
    ("gone", "Lines that no longer wait"),
    ("new", "Lines that wait and did not before"),
    ("kept", "Lines that wait in both runs"),
)


def comparison_page(found: Comparison, names: tuple[str, str], version: str) -> str:
    """The differences of two traces as a page; `names` are those of their files."""
    sections = [_step(found, names)]
    for name, title in _LINES:
        pairs: Sequence[LinePair] = getattr(found, name)
        if pairs:
            sections.append(_lines(name, title, pairs))
    if found.work:
        sections.append(_work(found))
    title = f"{names[0]} and {names[1]}"
    return whole_page(f"{title} – perflint compare", _masthead(found, names), sections, version)


def _masthead(found: Comparison, names: tuple[str, str]) -> Markup:
    facts = [(when, breakable(name)) for when, name in zip(("before", "after"), names, strict=True)]
    header = found.after.trace.header
    gpus = ", ".join(dict.fromkeys(header.devices)) or ("simulated" if header.simulated else "none")
    facts += [("GPU", join(gpus)), ("torch", join(header.torch or "unknown"))]
    return join(
        tag("p", "perflint compare", class_="brand"),
        tag("h1", "Two runs compared"),
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts"),
    )


def _step(found: Comparison, names: tuple[str, str]) -> Section:
    rows = [[name, *figures(pair)] for name, pair in step_rows(found)]
    return section(
        _NAMES,
        "step",
        "The step",
        tag("p", headline(found), class_="headline"),
        _bars(((names[0], "before", found.before), (names[1], "after", found.after))),
        table("Figures per step", (Column("per step"), *_PAIR), rows) if rows else "",
        [note(f"{text[:1].upper()}{text[1:]}.") for text in notes(found)],
        short="Step",
    )


def _bars(runs: Sequence[tuple[str, str, Facts]]) -> Markup:
    """The parts of a step of both runs, on one scale."""
    parts = [parts_of(facts) for _, _, facts in runs]
    scale = finite(max((sum(each.values()) for each in parts), default=0.0))
    if scale <= 0:
        return Markup()
    kinds = {kind for each in parts for kind in each}
    legend = [tag("li", swatch(kind), tag("span", words)) for kind, words in CAUSES.items() if kind in kinds]
    bars = [
        tag(
            "li",
            tag("p", tag("b", when), " ", breakable(name), f" {ms(facts.step_ms)}", class_="label"),
            split_bar(each, scale, f"bar-{when}"),
        )
        for (name, when, facts), each in zip(runs, parts, strict=True)
        if each
    ]
    return join(tag("ul", legend, class_="legend"), tag("ol", bars, class_="bars"))


def _lines(name: str, title: str, pairs: Sequence[LinePair]) -> Section:
    rows: list[list[Content]] = [
        [
            join(tag("span", breakable(place(pair)), class_="place"), tag("br"), tag("code", pair.text)),
            *figures(pair.cost_ms, 3),
        ]
        for pair in pairs[:_MOST]
    ]
    content = table("Cost in ms per step", (Column("line"), *_PAIR), rows)
    return section(
        _NAMES, name, title, content, left_out(len(pairs) - _MOST, "lines"), short=title.removeprefix("Lines that ")
    )


def _work(found: Comparison) -> Section:
    columns = (Column("kind"), *_PAIR, Column("number", True, "kernels or copies per step, before and after"))
    rows: list[list[Content]] = [
        [each.kind, *figures(each.ms, 3), " → ".join(figures(each.count, 0)[:2])] for each in found.work[:_MOST]
    ]
    content = table("Time in ms per step", columns, rows)
    return section(_NAMES, "work", "Work on the GPU", content, left_out(len(found.work) - _MOST, "kinds"), short="Work")
