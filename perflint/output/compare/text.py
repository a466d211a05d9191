"""A comparison of two traces as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perflint.output.compare.comparison import Comparison, LinePair, Pair
from perflint.output.report.overview import CAUSES
from perflint.output.summary import count
from perflint.output.terminal import Style, printable, width

SHOWN = 10
"""Lines of code, and kinds of work, of each table."""
_WORDS = {
    "program": "the program",
    "devices": "the GPU",
    "torch": "the version of torch",
    "python": "the version of Python",
    "world_size": "the number of ranks",
    "simulated": "whether the GPU was simulated",
    "step_source": "what counts as a step",
}
_HEAD = f"{'before':>10} {'after':>10} {'change':>10}"


def comparison_text(found: Comparison, names: tuple[str, str], style: Style) -> str:
    """The differences of two traces as text; `names` are those of their files."""
    parts = (
        _headline(found, names, style),
        _step(found, style),
        _lines("no longer wait", found.gone, style),
        _lines("wait that did not before", found.new, style),
        _lines("wait in both runs", found.kept, style),
        _work(found, style),
        (f"note: {printable(text)}" for text in notes(found)),
    )
    return "".join(f"{line}\n" for part in parts for line in part)


def _headline(found: Comparison, names: tuple[str, str], style: Style) -> Iterator[str]:
    title = style("perflint compare:", "bold")
    yield f"{title} {printable(names[0])} (before) and {printable(names[1])} (after)"
    yield headline(found)


def headline(found: Comparison) -> str:
    """The change of the step in a sentence."""
    before, after = found.step_ms.before, found.step_ms.after
    if not before or not after:
        return "A trace has no step times, so the times of the steps cannot be compared."
    ratio = before / after
    times = f"A step takes {after:.2f} ms instead of {before:.2f} ms"
    if found.is_within_spread:
        return f"{times}: within the spread of the steps."
    return f"{times}: {ratio:.2f} x faster." if ratio >= 1 else f"{times}: {1 / ratio:.2f} x slower."


def step_rows(found: Comparison) -> list[tuple[str, Pair]]:
    """The figures of a step that at least one trace has, with their names."""
    rows = [("step (ms)", found.step_ms)]
    rows += [(f"{CAUSES[kind]} (ms)", pair) for kind, pair in found.parts.items()]
    rows.append(("waits for the GPU", found.waits))
    return [(name, pair) for name, pair in rows if pair.before is not None or pair.after is not None]


def _step(found: Comparison, style: Style) -> Iterator[str]:
    rows = step_rows(found)
    if rows:
        yield style(f"{_HEAD}  per step", "bold")
        yield from (f"{_figures(pair)}  {name}" for name, pair in rows)


def _lines(words: str, pairs: Sequence[LinePair], style: Style) -> Iterator[str]:
    if not pairs:
        return
    title = f"{count(len(pairs), 'line')} {words if len(pairs) > 1 else _singular(words)} (ms/step)"
    yield style(f"{_HEAD}  {title}", "bold")
    places = [printable(place(pair)) for pair in pairs[:SHOWN]]
    widest = max(map(width, places))
    for pair, at in zip(pairs, places, strict=False):
        yield f"{_figures(pair.cost_ms, 3)}  {at}{' ' * (widest - width(at))}  {printable(pair.text)}"
    yield from _more(len(pairs), "line")


def _singular(words: str) -> str:
    return words.replace("wait", "waits", 1)


def place(pair: LinePair) -> str:
    """The place of a line, with both numbers if it has moved."""
    line = pair.after or pair.before
    assert line is not None
    before, after = pair.before, pair.after
    moved = f" (was {before.line})" if before and after and before.line != after.line else ""
    return f"{line.file}:{line.line}{moved}"


def _work(found: Comparison, style: Style) -> Iterator[str]:
    if not found.work:
        return
    yield style(f"{_HEAD}  work on the GPU (ms/step; kernels and copies per step)", "bold")
    for each in found.work[:SHOWN]:
        before, after = (("?" if value is None else f"{value:.0f}") for value in (each.count.before, each.count.after))
        yield f"{_figures(each.ms, 3)}  {each.kind} ({before} -> {after})"
    yield from _more(len(found.work), "kind")


def _more(number: int, noun: str) -> Iterator[str]:
    if number > SHOWN:
        yield f"{'':>32}  {count(number - SHOWN, f'more {noun}')}"


def notes(found: Comparison) -> Iterator[str]:
    """The remarks that a reader needs to trust the figures."""
    for name, before, after in found.conditions:
        yield f"the runs differ in {_WORDS[name]}: {before} before, {after} after"
    for words, facts in (("before", found.before), ("after", found.after)):
        header = facts.trace.header
        if header.simulated:
            yield f"the run {words} was simulated without a GPU, so it has no times"
        elif facts.step_ms is None:
            yield f"the run {words} has no recorded steps"
        elif not facts.has_costs:
            yield f"the run {words} has no timeline, so its idle time and costs are unknown"


def figures(pair: Pair, digits: int = 2) -> tuple[str, str, str]:
    """The figures of both runs and their difference, as text."""
    before, after = ("?" if value is None else f"{value:.{digits}f}" for value in (pair.before, pair.after))
    # Adding 0 turns a negative zero into a positive one.
    change = "" if pair.change is None else f"{round(pair.change, digits) + 0.0:+.{digits}f}"
    return before, after, change


def _figures(pair: Pair, digits: int = 2) -> str:
    return " ".join(f"{figure:>10}" for figure in figures(pair, digits))
