"""The summary of a trace in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from perflint.frozen import dataclass
from perflint.output.summary import count, counted_by, of_steps
from perflint.output.terminal import Style, printable, printable_path, width
from perflint.tracer.events import Compilation, Experiment, Failure, Header, HeldMemory, PageableCopy, Place, Step, Sync
from perflint.tracer.trace import BLIND, BLIND_HELP, Trace

SHOWN = 10
"""Lines of code, and experiments."""
FASTER = 1.02
"""The ratio of an experiment from which a change is shown for itself."""
HOLDERS = 3
"""Lines that hold memory, and functions that were compiled."""
_NO_GPU = "The program used no GPU, so no wait could be seen: `perflint trace --simulate` shows them without one."
_WORK = 2.0
"""Seconds of work in other processes from which on it may be the training: importing torch takes about as long."""
_NONE_SIMULATED = "The program put nothing on the simulated GPU, so no wait could be seen."
_NO_STEPS = "No steps were found. Mark them: `with perflint.trace() as t:` and `t.step()`, or trace with `--warmup 0`."


def trace_text(trace: Trace, written: Path | None, style: Style) -> str:
    """The summary of a trace: what a step takes, and the lines that cost most in it."""
    parts = (
        _overview(trace, style), _lines(trace, style), _experiments(trace, style), _compiled(trace), _held(trace),
        _notes(trace, written),
    )  # fmt: skip
    return "".join(f"{line}\n" for part in parts for line in part)


def _overview(trace: Trace, style: Style) -> Iterator[str]:
    header = trace.header
    steps = trace.of(Step)
    rank = f" (rank {header.rank} of {header.world_size})" if header.world_size > 1 else ""
    title = style(f"perflint trace{rank}:", "bold")
    why = "" if trace.of(Sync) else _why_empty(header)
    if trace.step_ms is None:
        note = " (simulated)" if header.simulated else ""
        yield f"{title}{note} {why or _NO_STEPS}"
        return
    profiled = [step for step in steps if step.profiled]
    text = f"{title} {count(header.steps, 'step')} of {trace.step_ms:.2f} ms ({counted_by(header.step_source)})"
    if header.simulated:
        text = (
            f"{title} {count(header.steps, 'step')} ({counted_by(header.step_source)}), simulated: no GPU, so no times"
        )
    elif profiled:
        idle = trace.idle_share * sum(step.idle_ms for step in profiled) / len(profiled)
        share = f" ({idle / trace.step_ms:.0%})" if trace.step_ms else ""
        text += f", GPU idle for {idle:.2f} ms{share} of each"
    elif header.devices:
        text += "; too few steps for the profiler, so costs are not known"
    yield text
    if why:
        yield why
    elif not header.lines_recorded:
        yield missing_lines(tuple(map(int, header.python.split(".")[:2] if header.python else ())))


def _why_empty(header: Header) -> str:
    """The reason why the trace has no wait; empty if it could have some."""
    if not header.watched:
        return f"The tracer saw nothing but lines: {BLIND}; {BLIND_HELP}."
    if header.devices:
        return ""
    if not header.step_source and header.children_seconds >= _WORK:
        return (
            f"The program made no step itself, but started processes that worked for {header.children_seconds:.0f} s. "
            "Trace these: `torchrun --no-python perflint trace SCRIPT`, "
            "`accelerate launch --no_python perflint trace SCRIPT`."
        )
    return _NONE_SIMULATED if header.simulated else _NO_GPU


def missing_lines(version: tuple[int, ...]) -> str:
    """The sentence for a trace without every line that ran, by the version of Python; a profile has none."""
    if not version:
        return "A profile does not list the lines that ran, so no finding is marked `not executed`."
    if version >= (3, 12):
        return "The program uses torch.compile, so not every executed line was recorded and none is `not executed`."
    name = ".".join(map(str, version))
    return (
        f"Python {name} cannot record every executed line, so no finding is marked `not executed`. "
        "Python 3.12 can, unless the program uses torch.compile."
    )


def _lines(trace: Trace, style: Style) -> Iterator[str]:
    syncs = [sync for sync in trace.of(Sync) if not sync.origin and not sync.allowed]
    rows = sorted(_rows(trace, [sync for sync in syncs if sync.hits.steps]), key=_first_to_last)
    if not rows:
        if trace.header.devices and trace.header.steps:
            yield "No line synchronized in a recorded step."
        return
    yield style(f"{'ms/step':>9} {'syncs/step':>11}  line", "bold")
    on_line = Counter((row.place.file, row.place.line) for row in rows)
    places = [_named(row.place, on_line[row.place.file, row.place.line] > 1) for row in rows[:SHOWN]]
    widest = max(map(width, places))
    for row, name in zip(rows, places, strict=False):
        known = f"{'?':>9}" if row.cost_ms is None else f"{row.cost_ms:9.3f}"
        rare = "" if row.steps is None else f"  ({of_steps(row.steps, trace.header.steps)})"
        text = printable(row.place.text)
        yield f"{known} {row.per_step:11.2f}  {name}{' ' * (widest - width(name))}  {text}{rare}"
    if len(rows) > SHOWN:
        yield f"{len(rows) - SHOWN} more {'lines' if len(rows) > SHOWN + 1 else 'line'} synchronized."


def _named(place: Place, with_column: bool) -> str:
    return printable(f"{place.file}:{place.line}" + (f":{place.column}" if with_column else ""))


@dataclass(frozen=True, slots=True)
class _Row:
    """A place that synchronized in recorded steps."""

    place: Place
    cost_ms: float | None
    """Milliseconds per step; None if they were not measured."""
    per_step: float
    steps: int | None
    """The number of recorded steps in which it synchronized, if it did not in all of them; else None."""
    is_rare: bool
    """True if it synchronized in less than half of the recorded steps."""


def _rows(trace: Trace, syncs: list[Sync]) -> Iterator[_Row]:
    by_place: dict[Place, list[Sync]] = {}
    for sync in syncs:
        by_place.setdefault(sync.place, []).append(sync)
    costs, steps = trace.costs, max(trace.header.steps, 1)
    for place, there in by_place.items():
        often = trace.steps_with(there)
        some = often if often is not None and often < steps else None
        cost = None if costs is None else costs.get(place, 0.0)
        per_step = sum(sync.hits.steps for sync in there) / steps
        yield _Row(place, cost, per_step, some, some is not None and 2 * some < steps)


def _first_to_last(row: _Row) -> tuple[object, ...]:
    """A sort key: costs first; without costs, places that synchronize in most steps."""
    return -(row.cost_ms or 0.0), row.is_rare, -row.per_step


def _experiments(trace: Trace, style: Style) -> Iterator[str]:
    """The experiments with their times before and after, the greatest saving first."""
    found = sorted(trace.of(Experiment), key=lambda each: -each.saved_ms)
    if not found:
        return
    faster = [each for each in found if each.ratio >= FASTER and each.low > 1 and each.saved_ms > 0]
    on_host = "" if found[0].device.startswith("cuda") else ", on the CPU"
    yield style(
        f"{count(len(found), 'experiment')}{on_host}: before / after, the time it saves, what was changed", "bold"
    )
    for each in faster[:SHOWN]:
        spread = f"{each.ratio:.2f} x ({each.low:.2f}-{each.high:.2f})"
        yield f"{spread:>20} {each.saved_ms:9.3f} ms/step  {printable(_change(each))}"
    rest = [each for each in found if each not in faster[:SHOWN]]
    if rest:
        names = Counter(each.name for each in rest)
        said = ", ".join(f"{name} ({number})" if number > 1 else name for name, number in names.items())
        others = f"{len(rest)} more" if faster else "All of them"
        yield f"{others} with less gain, none, or none that is certain: {printable(said)}."


def _change(each: Experiment) -> str:
    if each.scope != "layer":
        return f"{each.change} of {each.subject}"
    place = f"{each.place.file}:{each.place.line}  " if each.place else ""
    return f"{place}{each.change} in {each.subject}"


def _compiled(trace: Trace) -> Iterator[str]:
    """The time that the compiler took, and its functions that took most."""
    made = sorted(trace.of(Compilation), key=lambda each: -each.seconds)
    if made:
        named = [f"{each.file}:{each.line} ({each.function}) {each.seconds:.1f} s" for each in made[:HOLDERS]]
        more = f" and {len(made) - HOLDERS} more" if len(made) > HOLDERS else ""
        total = sum(each.seconds for each in made)
        yield printable(f"torch.compile took {total:.1f} s: {', '.join(named)}{more}.")


def _held(trace: Trace) -> Iterator[str]:
    """The memory that was in use when most was, and the lines that held most of it."""
    held = trace.of(HeldMemory)
    if held:
        most = sorted(held, key=lambda each: -each.bytes)[: HOLDERS + 1]
        named = ", ".join(f"{_gib(each.bytes)} {_holder(each)}" for each in most)
        yield printable(f"Most memory in a step: {_gib(sum(each.bytes for each in held))}, of it {named}.")


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"


def _holder(held: HeldMemory) -> str:
    return f"at {held.place.file}:{held.place.line}" if held.place else f"from {without_line(held)}"


def without_line(held: HeldMemory) -> str:
    """The source of memory that no line of the user's code allocated."""
    return "before the step" if held.source == "before" else "a backward pass, or other code without a line"


def _notes(trace: Trace, written: Path | None) -> Iterator[str]:
    copies = [copy for copy in trace.of(PageableCopy) if copy.hits.steps and not copy.allowed]
    allowed = sum(sync.hits.steps for sync in trace.of(Sync) if sync.allowed)
    if copies:
        places = ", ".join(printable(f"{copy.place.file}:{copy.place.line}") for copy in copies[:3])
        more = f" and {len(copies) - 3} more" if len(copies) > 3 else ""
        yield f"Copied with non_blocking=True from or to memory that is not pinned: {places}{more}."
    fallen = dict.fromkeys(sync.place for sync in trace.of(Sync) if sync.kind == "fallback")
    if fallen:
        places = ", ".join(printable(f"{place.file}:{place.line}") for place in list(fallen)[:3])
        more = f" and {len(fallen) - 3} more" if len(fallen) > 3 else ""
        yield f"The GPU has no kernel for an operator, which runs on the CPU: {places}{more}."
    if allowed:
        yield f"{count(allowed, 'sync')} allowed by `allow_sync`."
    for sync in trace.broken_promises:
        place = f"{sync.place.file}:{sync.place.line}"
        yield printable_path(f"{place} waits in {sync.promise}, which must be free of syncs.")
    for failure in trace.of(Failure):
        yield printable_path(f"{failure.part}: {failure.message}")
    if written is not None:
        yield f"Written to {printable(str(written))}."
