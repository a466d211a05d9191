"""The lines that make the CPU wait, with their cost and their source."""

from __future__ import annotations

from collections.abc import Sequence

from perflint.output.report.checked import Advice
from perflint.output.report.code import Code, excerpt
from perflint.output.report.facts import Facts, Line, share
from perflint.output.report.markup import Markup, breakable, join, tag, text
from perflint.output.report.numbers import ms, percent, plain, size, times
from perflint.output.report.parts import Column, Names, Section, details, head, left_out, section, table
from perflint.output.summary import count, of_steps
from perflint.tracer.events import PageableCopy, Place, Sync

SHOWN = 25
"""Lines."""
OPEN = 3
"""Lines whose source is shown at once, where they cost something."""
WORTH_SHARE = 0.01
"""Of a step: what costs less is not opened."""
FREE_SHARE = 0.005
"""The share of a step below which a cost cannot be distinguished from noise."""
_COLUMNS = (
    Column("Line"),
    Column("ms/step", True, "milliseconds per step"),
    Column("of step", True, "share of the step"),
    Column("waits/step", True, "waits per step"),
)


def line_table(facts: Facts, code: Code, names: Names, said: Advice) -> Section | None:
    """The lines that cost most."""
    if not facts.lines:
        if not facts.trace.header.devices and not facts.trace.header.simulated:
            return None
        none = tag("p", "No line waited for the GPU in a recorded step.")
        return section(names, "lines", "Lines that wait", none, short="Waits")
    shown = facts.lines[:SHOWN]
    ids = line_ids(facts, names)
    columns = _COLUMNS if facts.has_costs else (_COLUMNS[0], _COLUMNS[-1])
    bodies = [
        tag("tbody", _rows(line, number, facts, code, said), class_=_kind(line, facts), id=ids[line.file, line.line])
        for number, line in enumerate(shown)
    ]
    caption = f"Lines that wait for the GPU, the {'most costly' if facts.has_costs else 'most frequent'} first"
    content = tag("table", tag("caption", caption, class_="hidden"), head(columns), bodies, class_="lines")
    return section(
        names,
        "lines",
        "Lines that wait",
        tag("p", _explained(facts), class_="lead"),
        content,
        left_out(len(facts.lines) - len(shown), "lines that waited are"),
        _elsewhere(facts),
        short="Waits",
    )


def line_ids(facts: Facts, names: Names) -> dict[tuple[str, int], str]:
    """The ids of the lines that the table shows, by file and number."""
    return {(line.file, line.line): names.id(f"line{at}") for at, line in enumerate(facts.lines[:SHOWN])}


def _kind(line: Line, facts: Facts) -> str | None:
    """The class of a line that costs nothing."""
    is_free = facts.has_costs and (share(line.cost_ms, facts.step_ms) or 0.0) < FREE_SHARE
    return "free-line" if is_free else None


def _elsewhere(facts: Facts) -> Markup:
    """How many lines waited only where it hardly matters."""
    syncs = [sync for sync in facts.trace.of(Sync) if not sync.allowed and not sync.origin]
    in_steps = {(sync.place.file, sync.place.line) for sync in syncs if sync.hits.steps}
    outside = {(sync.place.file, sync.place.line) for sync in syncs} - in_steps
    if not outside:
        return Markup()
    lines = count(len(outside), "more line")
    return tag("p", f"{lines} waited only before or after the recorded steps.", class_="aside")


def _explained(facts: Facts) -> str:
    if facts.trace.header.simulated:
        return "Lines at which the CPU would wait for a GPU, by how often."
    if not facts.has_costs:
        return "Lines at which the CPU waited for the GPU, by how often. The cost was not measured."
    return (
        "The time that a step saves without the wait: the GPU is idle because the CPU could not queue work meanwhile. "
        "The savings of the lines add up. A wait beside a full queue costs nothing, however long it is."
    )


def _rows(line: Line, number: int, facts: Facts, code: Code, said: Advice) -> Markup:
    """The rows of a line: its figures, and across the table its source and the cure."""
    part = share(line.cost_ms, facts.step_ms)
    name = f"{line.file}:{line.line}"
    places = [sync.place for sync in line.syncs]
    is_worth_it = (part or 0.0) >= WORTH_SHARE or not facts.has_costs or len(facts.lines) <= OPEN
    costs = (plain(line.cost_ms, 3), percent(part)) if facts.has_costs else ()
    cells = [tag("td", cell, class_="number") for cell in (*costs, _often(line, facts))]
    figures = tag("tr", tag("th", _place(line), scope="rowgroup"), cells)
    source = details(
        tag("code", text(line.syncs[0].place.text, 160)),
        excerpt(places, code.lines(line.file), name),
        said.of(line.file, line.line),
        _expressions(line, code),
        _alone(line, facts),
        _callers(line),
        is_open=number < OPEN and is_worth_it,
    )
    return join(figures, tag("tr", tag("td", source, colspan=1 + len(cells))))


def _often(line: Line, facts: Facts) -> Markup:
    """The waits per step, and the number of steps with waits if there are none in others."""
    if line.steps is None:
        return text(times(line.per_step))
    some = tag("small", of_steps(line.steps, facts.trace.header.steps), class_="often")
    return join(times(line.per_step), some)


def _place(line: Line) -> Markup:
    """The line's name, which may break after slashes and dots; the function below."""
    return join(place_name(line.file, line.line), tag("small", breakable(line.syncs[0].place.function)))


def place_name(file: str, line: int) -> Markup:
    """`file:line`, of which the last part stands out."""
    folder, slash, name = file.rpartition("/")
    before = tag("span", breakable(f"{folder}{slash}"), class_="folder") if slash else ""
    return tag("span", before, breakable(f"{name}:{line}"), class_="place")


def _expressions(line: Line, code: Code) -> Markup:
    """The cost of each of several expressions of a line."""
    places = sorted({sync.place for sync in line.syncs}, key=lambda place: -line.costs.get(place, 0.0))
    if len(places) < 2:
        return Markup()
    lines = code.lines(line.file)
    items = []
    for place in places[:10]:
        often = sum(sync.hits.steps for sync in line.syncs if sync.place == place)
        cost = f"{ms(line.costs[place], 3)} per step" if place in line.costs else "cost not known"
        items.append(tag("li", tag("code", _segment(place, lines)), f" – {cost}, {count(often, 'wait')} in all"))
    return tag("ul", items, class_="expressions")


def _alone(line: Line, facts: Facts) -> Markup:
    """The saving without this wait alone, if it is less than its share, and that of all lines that depend on it."""
    if not _shares_its_saving(line, facts):
        return Markup()
    others = [other for other in facts.lines if other is not line and _shares_its_saving(other, facts)]
    others = others or [other for other in facts.lines if other is not line]
    saved, whole = sum(line.alone.values()), sum(other.cost_ms or 0.0 for other in (line, *others))
    only = f"Removing only this wait saves {ms(saved, 3)}, because"
    if not others:
        return tag("p", f"{only} other waits take its place.", class_="callers")
    together = f"Removing all of these waits saves {ms(whole)}."
    return tag("p", f"{only} {_named(others, line.file)} for the same work. {together}", class_="callers")


def _shares_its_saving(line: Line, facts: Facts) -> bool:
    """True if removing one line's wait alone saves less than its share: other waits take its place."""
    if len(line.alone) != 1 or len(line.costs) != 1:
        return False
    return sum(line.costs.values()) - sum(line.alone.values()) > FREE_SHARE * (facts.step_ms or 0.0)


def _named(lines: Sequence[Line], file: str) -> str:
    """Some lines with their verb, seen from a file: "lines 49 and 78 wait", "line 49 waits"."""
    ordered = sorted(lines, key=lambda line: (line.file != file, line.file, line.line))
    names = [f"{line.line}" if line.file == file else f"{line.file}:{line.line}" for line in ordered]
    if len(names) > 6:
        return f"{len(names)} other lines wait"
    *most, last = names
    return f"lines {', '.join(most)} and {last} wait" if most else f"line {last} waits"


def _segment(place: Place, lines: list[str] | None) -> str:
    if lines is None or not 0 < place.line <= len(lines):
        return f"columns {place.column} to {place.end_column - 1}"
    line = lines[place.line - 1]
    return line[place.column - 1 : place.end_column - 1 if place.end_line == place.line else None] or line.strip()


def _callers(line: Line) -> Markup:
    """How the line was reached, and what in torch waited."""
    stacks = list(dict.fromkeys(sync.stack[1:] for sync in line.syncs if len(sync.stack) > 1))
    parts = [
        tag("p", "Called from ", _joined([tag("code", frame) for frame in stack]), class_="callers")
        for stack in stacks[:3]
    ]
    inner = list(dict.fromkeys(sync.inner for sync in line.syncs if sync.inner))
    inner = [name for name in inner if name != f"{line.file}:{line.line}"]
    if inner:
        waits = _joined([tag("code", name) for name in inner[:3]])
        parts.append(tag("p", "It waits in ", waits, class_="callers"))
    kinds = {sync.kind for sync in line.syncs}
    if "explicit" in kinds:
        parts.append(tag("p", "An explicit synchronization.", class_="callers"))
    if "fallback" in kinds:
        parts.append(tag("p", "The GPU has no kernel for an operator, which runs on the CPU.", class_="callers"))
    threads = sorted({sync.thread for sync in line.syncs} - {"MainThread"})
    if threads:
        parts.append(tag("p", f"On other threads: {', '.join(threads[:5])}.", class_="callers"))
    return join(parts)


def _joined(parts: Sequence[Markup]) -> Markup:
    return join([join(" ← " if number else "", part) for number, part in enumerate(parts)])


def allowed_waits(facts: Facts, names: Names) -> Section | None:
    """Syncs that the program means."""
    if not facts.allowed:
        return None
    columns = [Column("Line"), Column("Reason"), *_COLUMNS[1:]]
    rows = [
        (
            _place(line),
            line.syncs[0].allowed,
            plain(line.cost_ms, 3),
            percent(share(line.cost_ms, facts.step_ms)),
            times(line.per_step),
        )
        for line in facts.allowed[:SHOWN]
    ]
    content = table("Waits that `perflint.allow_sync` allows", columns, rows, is_caption_hidden=True)
    rest = left_out(len(facts.allowed) - len(rows), "allowed lines are")
    return section(names, "allowed", "Allowed waits", content, rest)


def copies(facts: Facts, names: Names) -> Section | None:
    """Copies that may block although they are not to."""
    found = [copy for copy in facts.trace.of(PageableCopy) if copy.hits.steps]
    if not found:
        return None
    found.sort(key=lambda copy: (-copy.bytes * copy.hits.steps, copy.place.file, copy.place.line))
    steps = max(facts.trace.header.steps, 1)
    columns = [Column("Line"), Column("Direction"), Column("largest", True), Column("copies/step", True)]
    rows = [
        (
            join(place_name(copy.place.file, copy.place.line), tag("small", tag("code", text(copy.place.text, 160)))),
            copy.direction.replace("-", " ") + (f" (allowed: {copy.allowed})" if copy.allowed else ""),
            size(copy.bytes),
            times(copy.hits.steps / steps),
        )
        for copy in found[:SHOWN]
    ]
    lead = "Copies with non_blocking=True from or to memory that is not pinned: the CPU may wait all the same."
    return section(
        names,
        "copies",
        "Copies of pageable memory",
        tag("p", lead, class_="lead"),
        table("Copies of pageable memory", columns, rows, is_caption_hidden=True),
        left_out(len(found) - len(rows), "places are"),
    )
