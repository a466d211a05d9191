"""Several traces side by side: the ranks of a run, or runs to compare."""

from __future__ import annotations

from collections.abc import Sequence

from perflint.output.ranks import rank_notes
from perflint.output.report.facts import Facts, finite, share
from perflint.output.report.markup import Content, Markup, join, tag
from perflint.output.report.numbers import ms, percent, plain, times
from perflint.output.report.overview import CAUSES, parts_of, split_bar, swatch
from perflint.output.report.parts import Column, Names, Section, left_out, section, table
from perflint.tracer.ranks import RankReport, are_ranks, join_ranks

ROWS = 256
"""Traces in the table."""
BARS = 16
"""Traces in the picture."""
_COLUMNS = (
    Column("Trace"),
    Column("step ms", True),
    Column("busy ms", True),
    Column("idle ms", True),
    Column("idle", True, "idle share of the step"),
    Column("waits/step", True, "waits per step"),
    Column("cost of waits, ms", True),
)
_COLLECTIVES = (Column("in collectives, ms", True), Column("of it nothing else, ms", True))


def side_by_side(shown: Sequence[tuple[str, str, Facts]], whole: int) -> Section:
    """A bar and a row for each trace, given what it is called, its file and its figures.

    The first `whole` of them have sections of their own, `t0` and so on. Of the ranks of one run it is
    also said which one makes the others wait.
    """
    traces = [facts.trace for _, _, facts in shown]
    report = join_ranks(traces) if are_ranks(traces) else None
    rows = [_row(number, each, whole, report) for number, each in enumerate(shown[:ROWS])]
    columns = _COLUMNS if report is None else (*_COLUMNS, *_COLLECTIVES)
    return section(
        Names(""),
        "traces",
        "Side by side",
        [tag("p", note, class_="verdict") for note in (rank_notes(report) if report else ())],
        _picture(shown[:BARS]),
        table("Traces side by side", columns, rows, is_caption_hidden=True),
        left_out(len(shown) - whole, "traces are not shown in full"),
    )


def _row(number: int, shown: tuple[str, str, Facts], whole: int, report: RankReport | None) -> Sequence[Content]:
    label, file, facts = shown
    name = tag("a", label, href=f"#t{number}") if number < whole else label
    cells = (
        join(tag("span", name, class_="place"), tag("small", file)),
        plain(facts.step_ms),
        plain(facts.busy_ms),
        plain(facts.idle_ms),
        percent(share(facts.idle_ms, facts.step_ms)),
        times(facts.syncs_per_step),
        plain(facts.idle.sync_ms if facts.idle else None, 3),
    )
    if report is None:
        return cells
    rank = next(rank for rank in report.ranks if rank.rank == facts.trace.header.rank)
    return (*cells, plain(rank.collective_ms), plain(rank.exposed_ms))


def _picture(shown: Sequence[tuple[str, str, Facts]]) -> Markup:
    """The parts of a step of each trace, on one scale."""
    values = [parts_of(facts) for _, _, facts in shown]
    scale = finite(max((sum(parts.values()) for parts in values), default=0.0))
    if scale <= 0:
        return Markup()
    kinds = {kind for parts in values for kind in parts}
    legend = [tag("li", swatch(kind), tag("span", words)) for kind, words in CAUSES.items() if kind in kinds]
    bars = [
        tag(
            "li",
            tag("p", tag("b", label), f" {ms(facts.step_ms)}", class_="label"),
            split_bar(parts, scale, f"bar{at}"),
        )
        for at, ((label, _, facts), parts) in enumerate(zip(shown, values, strict=True))
        if parts
    ]
    return join(tag("ul", legend, class_="legend"), tag("ol", bars, class_="bars"))
