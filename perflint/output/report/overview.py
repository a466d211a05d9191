"""The time of a step and its parts, and the limits of the trace."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from perflint.output.report.code import Code
from perflint.output.report.facts import Facts, share
from perflint.output.report.markup import Markup, breakable, join, tag, with_code
from perflint.output.report.numbers import ms, percent, plain, times
from perflint.output.report.parts import Names, Section, note, section
from perflint.output.summary import count
from perflint.tracer.events import Failure, Header, Step
from perflint.tracer.profiles import PART
from perflint.tracer.trace import BLIND, BLIND_HELP

TITLE = "Where a step’s time goes"
FREE_LINE = 0.005
"""The share of a step below which the cost of a line cannot be distinguished from noise."""
FREE_SHARE = 0.03
"""Of a step: less is not worth words."""
FEW = 3
"""Steps without the profiler that make no good median."""
CAUSES = {
    "busy": "GPU busy",
    "collective": "collectives, nothing else",
    "sync": "idle: after a wait",
    "loader": "idle: waiting for data",
    "host": "idle: the CPU was late",
}
"""The parts of a step, by the class of their colour and pattern."""


def overview(facts: Facts, code: Code, names: Names) -> Section:
    """The first section of a trace."""
    notes = [note(with_code(text), kind) for kind, text in remarks(facts, code)]
    headline = tag("p", breakable(_headline(facts)), class_="headline")
    if facts.step_ms is None:
        is_empty = not facts.trace.header.simulated or not facts.lines
        return section(names, "overview", "About this trace", "" if is_empty else headline, notes, short="Overview")
    content = (headline, _figures(facts), _split(facts, names), notes)
    return section(names, "overview", TITLE, content, short="Overview")


def _headline(facts: Facts) -> str:
    """The time that a step would gain, or the reason why the waits are not its problem."""
    return f"{_every_step(facts)}{_few_steps(facts)}"


def _every_step(facts: Facts) -> str:
    """The cost of the lines that wait in most steps."""
    least = FREE_LINE * (facts.step_ms or 0.0)
    costly = [line for line in facts.lines if (line.cost_ms or 0.0) > least and not line.is_rare]
    if not facts.has_costs or facts.step_ms is None:
        waits = "wait" if facts.syncs_per_step == 1 else "waits"
        return f"{times(facts.syncs_per_step)} {waits} for the GPU per step. Their cost was not measured."
    saved = sum(line.cost_ms or 0.0 for line in costly)
    if not costly or saved >= facts.step_ms:
        return _sentence(facts) or "No line waits for the GPU at a cost."
    after = facts.step_ms - saved
    return (
        f"{count(len(costly), 'line')} {'cost' if len(costly) > 1 else 'costs'} {ms(saved)} "
        f"({percent(share(saved, facts.step_ms))}) of every step. Without these waits a step takes {ms(after)} instead "
        f"of {ms(facts.step_ms)}: {facts.step_ms / after:.2f} × faster. Start with {costly[0].file}:{costly[0].line}."
    )


def _few_steps(facts: Facts) -> str:
    """The number of lines that wait only in some steps, whose cost is not that of every step."""
    rare = [line for line in facts.lines if line.is_rare]
    if not rare:
        return ""
    return f" {count(len(rare), 'more line')} {'wait' if len(rare) > 1 else 'waits'} only in a few steps."


def _figures(facts: Facts) -> Markup:
    found = [("step time", ms(facts.step_ms), f"median of {count(facts.trace.header.steps, 'step')}")]
    if facts.idle_ms is not None:
        found.append(("GPU idle", ms(facts.idle_ms), f"{percent(share(facts.idle_ms, facts.step_ms))} of the step"))
    if facts.idle is not None:
        part = percent(share(facts.idle.sync_ms, facts.step_ms))
        found.append(("cost of waits", ms(facts.idle.sync_ms), f"{part} of the step"))
    if facts.trace.header.devices:
        found.append(("waits", times(facts.syncs_per_step), "per step"))
    return tag(
        "dl",
        [tag("div", tag("dt", name), tag("dd", tag("b", value), tag("small", more))) for name, value, more in found],
        class_="figures",
    )


def _split(facts: Facts, names: Names) -> Markup:
    """The parts of a step: a bar, and the same in words."""
    if facts.idle is None or facts.busy_ms is None:
        return Markup()
    parts = parts_of(facts)
    whole = sum(parts.values())
    legend = [
        tag(
            "li",
            swatch(kind),
            tag("span", CAUSES[kind]),
            tag("b", ms(value)),
            tag("small", percent(share(value, whole))),
        )
        for kind, value in parts.items()
    ]
    bar = split_bar(parts, whole, names.id("split"))
    return join(bar, tag("ul", legend, class_="legend split-legend"), tag("p", _sentence(facts), class_="lead"))


def parts_of(facts: Facts) -> dict[str, float]:
    """The milliseconds of each of `CAUSES` in a step, without collectives if it has none.

    Empty without a timeline.
    """
    if facts.idle is None or facts.busy_ms is None:
        return {}
    busy = {"busy": facts.busy_ms - facts.collective_ms}
    collective = {"collective": facts.collective_ms} if facts.collective_ms else {}
    idle = {"sync": facts.idle.sync_ms, "loader": facts.idle.loader_ms, "host": facts.idle.host_ms}
    return busy | collective | idle


def split_bar(parts: Mapping[str, float], scale: float, name: str) -> Markup:
    """The parts of a step, of which `scale` milliseconds are as wide as the page; `name` is the id of its title."""
    shapes, at = [], 0.0
    for kind, value in parts.items():
        part = share(value, scale) or 0.0
        shapes.append(tag("rect", x=f"{at:.3%}", width=f"{part:.3%}", height="100%", class_=kind) if part else "")
        at += part
    words = ", ".join(f"{CAUSES[kind]} {ms(value)}" for kind, value in parts.items())
    title = tag("title", f"A step: {words}.", id=name)
    return tag("svg", title, shapes, role="img", aria_labelledby=name, class_="split")


def swatch(kind: str, height: int | None = None) -> Markup:
    """A sample of a colour and pattern; `height` is that of the shape, in pixels."""
    shape = tag("rect", width="100%", height="100%" if height is None else height, class_=kind)
    return tag("svg", shape, class_="swatch", aria_hidden="true")


def _sentence(facts: Facts) -> str:
    idle, all_idle = facts.idle, facts.idle_ms
    if idle is None or all_idle is None:
        return ""
    if (share(facts.collective_ms, facts.step_ms) or 0.0) > max(share(all_idle, facts.step_ms) or 0.0, FREE_SHARE):
        return (
            f"For {ms(facts.collective_ms)} the GPU does nothing but collectives. The time in them is for moving data "
            "and for waiting until all other ranks have come."
        )
    if (share(all_idle, facts.step_ms) or 0.0) < FREE_SHARE:
        return "The GPU has work nearly all the time: a step gets faster only with less or better work for it."
    parts = {
        "waits for the GPU: they empty its queue, and it idles until the CPU has filled it again": idle.sync_ms,
        "waits for data: the loader does not keep up": idle.loader_ms,
        "a late CPU: Python and torch take longer to launch work than the GPU takes to do it": idle.host_ms,
    }
    most, value = max(parts.items(), key=lambda item: item[1])
    return f"Most of the idle time ({plain(value)} of {ms(all_idle)}) is due to {most}."


def remarks(facts: Facts, code: Code) -> Iterator[tuple[str, str]]:
    """The remarks that a reader needs to trust the figures: a kind and a text each."""
    header = facts.trace.header
    yield from _about_times(facts, header)
    if header.ended not in ("finished", "exit 0"):
        ends = {"running": "its end was not recorded", "interrupted": "it was interrupted"}
        yield "The program did not finish", f"{ends.get(header.ended, f'it ended with {header.ended}')}."
    if not header.lines_recorded:
        yield "Lines", "not every line that ran was recorded, so nothing is said of lines that did not run."
    if code.changed:
        files = ", ".join(code.changed[:3]) + (" …" if len(code.changed) > 3 else "")
        yield "Source changed since the trace", f"{files}. Its lines are shown as they were recorded."
    if code.missing:
        files = ", ".join(code.missing[:3]) + (" …" if len(code.missing) > 3 else "")
        yield "Source not available", f"{files}. Its lines are shown as they were recorded."
    for failure in facts.trace.of(Failure)[:10]:
        if failure.part == PART:
            yield "Profile", f"{failure.message}."
        else:
            yield f"The tracer's {failure.part} failed", failure.message


def _about_times(facts: Facts, header: Header) -> Iterator[tuple[str, str]]:
    steps = facts.trace.of(Step)
    plain_steps = sum(step.count for step in steps if not step.profiled)
    if not header.watched:
        yield "Not recorded", f"the trace holds only the lines that ran: {BLIND}. To mend that, {BLIND_HELP}."
    elif header.simulated:
        yield (
            "Simulated",
            "there was no GPU; tensors only carried the device that they would be on, so there are no times. "
            f"To measure the cost of these waits, run this on a GPU next: `{_command(header)}`.",
        )
    elif not header.devices:
        yield (
            "No GPU",
            "the program used none, so no wait could be seen. `perflint trace --simulate` shows waits without a GPU.",
        )
    if not steps:
        yield "No steps", "none were found. Mark them with `Session.step()`, or trace with `--warmup 0`."
    elif header.devices and not header.simulated and not facts.has_costs:
        yield "Costs are not known", "there were too few steps for the profiler."
    elif facts.has_costs and plain_steps < FEW:
        yield "Few steps", f"{plain_steps or 'none'} without the profiler, which makes steps longer."


def _command(header: Header) -> str:
    """The command that traces the program on a GPU."""
    program = header.program
    words = [word.removeprefix(f"{header.root}/") for word in program] if program else ["PROGRAM"]
    return f"perflint trace {shlex.join(words)}"
