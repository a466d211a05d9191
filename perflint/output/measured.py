"""The measurements for a rule, as a section of its page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from perflint.findings import Effect
from perflint.rules.base import Rule
from perflint.rules.worth import Cost, Grid, grids, rows

_EXPLANATION = "Median time in ms with the pattern and without; the ratio with its range."
_GUESS = "No step of a program was measured for this rule yet: its severity is a guess."
_INSTEAD = ("It is a warning because", "It is information because")
_SEVERITY = (
    "Rows marked with * decide the severity of the rule: error from a quarter of the step lost, warning from 3%."
)


def is_without_cost(rule: Rule) -> bool:
    """True if something else than time decides the severity, as wrong results; the page then says so."""
    page = " ".join(rule.document.split())
    return rule.effect is Effect.CORRECTNESS or any(each in page for each in _INSTEAD)


def measured(rule: Rule) -> str:
    """The section `## Measured`: steps of programs, then operations, then grids of sizes.

    Empty for house rules, and where wrong results rather than time decide the severity.
    """
    if rule.origin:
        return ""
    known = [row for row in rows() if rule.code in row.rules or row.name in rule.measured]
    steps = [row for row in known if row.scope == "step"]
    alone = [row for row in known if row.scope != "step"]
    spread = [grid for grid in grids() if rule.code in grid.rules]
    guess = [] if rule.measured or is_without_cost(rule) else [_GUESS]
    if not known and not spread:
        return "\n".join(["## Measured", *guess]) if guess else ""
    parts = [f"## Measured\n{_where([*known, *spread])}\n{_EXPLANATION}"]
    parts += [_SEVERITY] if rule.measured else guess
    if steps:
        parts.append(_table("step", steps, rule.measured))
    if alone:
        parts.append(_table("operation", alone, ()))
    if spread:
        parts.append("\n".join(_grids(spread)))
    return "\n\n".join(parts)


def _where(known: Iterable[Cost | Grid]) -> str:
    found = dict.fromkeys((each.device, each.torch) for each in known)
    return "; ".join(f"{device}, torch {torch}" for device, torch in found) + "."


def _table(what: str, known: list[Cost], marked: tuple[str, ...]) -> str:
    lines = [f"| {what} | program | format | with | without | ratio |", "|---|---|---|---:|---:|---:|"]
    for row in known:
        mark = "\\* " if row.name in marked else ""
        ratio = f"{row.ratio:.2f} ({row.low:.2f} – {row.high:.2f})"
        pattern = row.pattern.replace("|", "\\|")
        lines.append(
            f"| {mark}{pattern} | {row.shape} | {row.dtype} | {row.bad_ms:.3g} | {row.good_ms:.3g} | {ratio} |"
        )
    return "\n".join(lines)


def _grids(known: list[Grid]) -> Iterator[str]:
    yield "| sizes of | format | rows | inner sizes | outer sizes | ratios |"
    yield "|---|---|---|---|---|---:|"
    for grid in known:
        _, misfit, power, _ = grid.name.split("-")
        where = "both sizes" if misfit == "both" else f"the {misfit} size"
        less = f"{grid.pattern}: {where} {power} less"
        yield (
            f"| {less} | {grid.dtype} | {_span(grid.rows)} | {_span(grid.inner)} | {_span(grid.outer)} "
            f"| {min(grid.ratios):.2f} – {max(grid.ratios):.2f} |"
        )


def _span(values: tuple[int, ...]) -> str:
    return f"{values[0]} – {values[-1]}"
