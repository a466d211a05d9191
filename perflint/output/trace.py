"""What a trace says, in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from perflint.output.summary import count, counted_by
from perflint.output.terminal import Style, printable, width
from perflint.tracer.events import Experiment, Failure, PageableCopy, Place, Step, Sync, Trace

SHOWN = 10
"""Lines of code, and experiments."""
FASTER = 1.02
"""The ratio of an experiment from which a change is shown for itself."""
_NO_GPU = "The program used no GPU, so no wait could be seen: `perflint trace --simulate` shows them without one."
_NO_LINES = (
    "Not every line that ran was recorded, so no finding is called `not executed` (Python 3.12 records all lines)."
)
_NO_STEPS = "No steps were found. Mark them: `with perflint.trace() as t:` and `t.step()`, or trace with `--warmup 0`."


def trace_text(trace: Trace, written: Path | None, style: Style) -> str:
    """The summary of a trace: what a step takes, and the lines that cost most in it."""
    parts = (_overview(trace, style), _lines(trace, style), _experiments(trace, style), _notes(trace, written))
    return "".join(f"{line}\n" for part in parts for line in part)


def _overview(trace: Trace, style: Style) -> Iterator[str]:
    header = trace.header
    steps = trace.of(Step)
    rank = f" (rank {header.rank} of {header.world_size})" if header.world_size > 1 else ""
    title = style(f"perflint trace{rank}:", "bold")
    if trace.step_ms is None:
        note = " (simulated)" if header.simulated else ""
        yield f"{title}{note} {_NO_STEPS if header.devices else _NO_GPU}"
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
    if not header.devices:
        yield _NO_GPU
    elif not header.lines_recorded and not header.simulated:
        yield _NO_LINES


def _lines(trace: Trace, style: Style) -> Iterator[str]:
    syncs = [sync for sync in trace.of(Sync) if not sync.origin and not sync.allowed]
    rows = sorted(_rows(trace, [sync for sync in syncs if sync.hits.steps]), key=lambda row: row[:2], reverse=True)
    if not rows:
        if trace.header.devices and trace.header.steps:
            yield "No line synchronized in a recorded step."
        return
    yield style(f"{'ms/step':>9} {'syncs/step':>11}  line", "bold")
    places = [printable(f"{place.file}:{place.line}") for _, _, place in rows[:SHOWN]]
    widest = max(map(width, places))
    for (cost, often, place), name in zip(rows, places, strict=False):
        known = f"{cost:9.3f}" if cost >= 0 else f"{'?':>9}"
        steps = _steps_with(trace, place)
        rare = f"  (in {steps} of {count(trace.header.steps, 'step')})" if steps else ""
        yield f"{known} {often:11.2f}  {name}{' ' * (widest - width(name))}  {printable(place.text)}{rare}"
    if len(rows) > SHOWN:
        yield f"{len(rows) - SHOWN} more {'lines' if len(rows) > SHOWN + 1 else 'line'} synchronized."


def _steps_with(trace: Trace, place: Place) -> int:
    """The number of steps in which a place synchronized; 0 if it is unknown, or if every step did."""
    header = trace.header
    windows = [sync.hits.windows for sync in trace.of(Sync) if sync.place == place]
    if header.steps_per_window != 1 or not all(windows):
        return 0
    steps = sum(
        any(each[index : index + 1] != (0,) for each in windows if index < len(each)) for index in range(header.steps)
    )
    return steps if steps < header.steps else 0


def _rows(trace: Trace, syncs: list[Sync]) -> Iterator[tuple[float, float, Place]]:
    """The cost of each place in milliseconds per step, -1 where it is not known, and its syncs per step."""
    hits: dict[Place, int] = {}
    for sync in syncs:
        hits[sync.place] = hits.get(sync.place, 0) + sync.hits.steps
    costs = trace.costs
    for place, often in hits.items():
        cost = -1.0 if costs is None else costs.get(place, 0.0)
        yield cost, often / max(trace.header.steps, 1), place


def _experiments(trace: Trace, style: Style) -> Iterator[str]:
    """What was timed before and after, what saves most first."""
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


def _notes(trace: Trace, written: Path | None) -> Iterator[str]:
    copies = [copy for copy in trace.of(PageableCopy) if copy.hits.steps and not copy.allowed]
    allowed = sum(sync.hits.steps for sync in trace.of(Sync) if sync.allowed)
    if copies:
        places = ", ".join(printable(f"{copy.place.file}:{copy.place.line}") for copy in copies[:3])
        more = f" and {len(copies) - 3} more" if len(copies) > 3 else ""
        yield f"Copied with non_blocking=True from or to memory that is not pinned: {places}{more}."
    if allowed:
        yield f"{count(allowed, 'sync')} allowed by `allow_sync`."
    for failure in trace.of(Failure):
        yield printable(f"{failure.part}: {failure.message}")
    if written is not None:
        yield f"Written to {printable(str(written))}."
