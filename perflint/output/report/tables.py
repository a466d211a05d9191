"""Sections that are tables: work on the GPU, modules, compilation, memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from perflint.output.report.facts import Facts, finite, share
from perflint.output.report.kinds import LAYOUT, by_kind
from perflint.output.report.lines import place_name
from perflint.output.report.markup import Content, Markup, join, tag, text, with_code
from perflint.output.report.numbers import percent, plain, size, times
from perflint.output.report.parts import Column, Names, Section, details, left_out, section, table
from perflint.output.summary import count
from perflint.output.trace import without_line
from perflint.tracer.events import (
    AllocatorChurn,
    Compilation,
    CudagraphSkip,
    GraphBreak,
    HeldMemory,
    Kernel,
    ModuleCall,
    Recompile,
    TensorFacts,
)

KERNELS = 15
MODULES = 60
REASONS = 25
HOLDERS = 12
_MUCH_LAYOUT = 0.05
_LAYOUT_HINT = (
    "{} of the work converts layouts of tensors. `channels_last` may avoid it: "
    "`perflint trace --experiments` measures that."
)
_SHORT = 90
"""Characters of a kernel's name that are shown at once."""


def kernels(facts: Facts, names: Names) -> Section | None:
    """The work of the GPU."""
    work = sorted(facts.trace.of(Kernel), key=lambda kernel: -finite(kernel.ms))
    steps = facts.trace.profiled_steps
    if not work or not steps:
        return None
    total = sum(finite(kernel.ms) for kernel in work)
    columns = [Column("Name"), Column("ms/step", True), Column("of work", True), Column("calls/step", True)]
    rows: list[Sequence[Content]] = [
        (
            _long(kernel.name),
            plain(kernel.ms / steps, 3),
            percent(share(finite(kernel.ms), total)),
            times(kernel.count / steps),
        )
        for kernel in work[:KERNELS]
    ]
    rest = sum(finite(kernel.ms) for kernel in work[KERNELS:])
    if rest:
        others = len(work) - KERNELS
        rows.append((f"{others:,} others", plain(rest / steps, 3), percent(share(rest, total)), ""))
    kinds = by_kind(work)
    layout = sum(ms for kind, ms, _ in kinds if kind == LAYOUT)
    by_kinds = table(
        "Work on the GPU by kind",
        [Column("Kind"), *columns[1:]],
        [(kind, plain(ms / steps, 3), percent(share(ms, total)), times(calls / steps)) for kind, ms, calls in kinds],
        is_caption_hidden=True,
        class_="fixed",
    )
    return section(
        names,
        "kernels",
        "Work on the GPU",
        tag("p", with_code(_LAYOUT_HINT.format(percent(share(layout, total)))), class_="lead")
        if (share(layout, total) or 0.0) >= _MUCH_LAYOUT
        else "",
        by_kinds,
        details(
            "The longest kernels",
            table(
                "Kernels and copies of the profiled steps, by time",
                columns,
                rows,
                is_caption_hidden=True,
                class_="fixed",
            ),
        ),
    )


def _long(name: str) -> Markup:
    """A name that is whole only on demand."""
    name = name.removeprefix("void ")
    if len(name) <= _SHORT:
        return tag("code", name)
    return details(tag("code", f"{name[:_SHORT]}…"), tag("code", name), class_="long")


def modules(facts: Facts, names: Names) -> Section | None:
    """The calls of modules; those that differ in nothing but their names are one row."""
    groups: defaultdict[tuple[object, ...], list[ModuleCall]] = defaultdict(list)
    for call in facts.trace.of(ModuleCall):
        modes = (call.training, call.grad, call.inference, call.autocast)
        groups[call.type, call.settings, call.inputs, modes].append(call)
    if not groups:
        return None
    columns = [
        Column("Module"), Column("Settings"), Column("Inputs"), Column("Mode"), Column("calls/step", True),
        Column("Made at"),
    ]  # fmt: skip
    rows = [_module(calls) for calls in list(groups.values())[:MODULES]]
    content = table("Calls of modules", columns, rows, is_caption_hidden=True, class_="wide")
    steps = facts.trace.of(ModuleCall)[0].steps
    summary = f"{count(len(groups), 'kind')} of calls in {count(steps, 'watched step')}"
    rest = left_out(len(groups) - len(rows), "kinds of calls are")
    return section(names, "modules", "Modules", tag("p", f"{summary}.", class_="lead"), content, rest)


def _module(calls: Sequence[ModuleCall]) -> Sequence[Content]:
    first = calls[0]
    own = list(dict.fromkeys(call.name or "(root)" for call in calls))
    shown = ", ".join(own[:3]) + (f" and {len(own) - 3} more" if len(own) > 3 else "")
    modes = ["training" if first.training else "eval"]
    modes.append("inference mode" if first.inference else "" if first.grad else "no grad")
    modes.append(f"autocast {first.autocast}" if first.autocast else "")
    made = place_name(first.made.file, first.made.line) if first.made else ""
    return (
        join(tag("code", first.type.rpartition(".")[2]), tag("small", shown)),
        tag("code", text(first.settings, 200)),
        join([tag("div", tag("code", _tensor(tensor))) for tensor in first.inputs[:4]]),
        ", ".join(mode for mode in modes if mode),
        times(sum(call.count for call in calls) / max(first.steps, 1)),
        made,
    )


def _tensor(tensor: TensorFacts) -> str:
    shape = " × ".join(str(size) for size in tensor.shape[:8]) or "scalar"
    layout = "" if tensor.layout == "contiguous" else f" {tensor.layout}"
    return f"{shape} {tensor.dtype}{layout} {tensor.device}"


def compilation(facts: Facts, names: Names) -> Section | None:
    """The times and failures of torch.compile."""
    rows: list[Sequence[Content]] = []
    for made in sorted(facts.trace.of(Compilation), key=lambda each: -each.seconds):
        function = join(place_name(made.file, made.line), tag("small", made.function))
        rows.append((function, "compiled", f"took {plain(made.seconds, 1)} s", f"{made.count:,}"))
    for broken in facts.trace.of(GraphBreak):
        where = place_name(broken.place.file, broken.place.line) if broken.place else "no line known"
        rows.append((where, "graph break", broken.reason, f"{broken.count:,}"))
    for again in facts.trace.of(Recompile):
        where = join(place_name(again.file, again.line), tag("small", again.function))
        rows.append((where, "recompile", again.reason, f"{again.count:,}"))
    skips = facts.trace.of(CudagraphSkip)
    rows += [("whole graph", "no CUDA graph", skip.reason, f"{skip.count:,}") for skip in skips]
    if not rows:
        return None
    columns = [Column("Line"), Column("What"), Column("Reason"), Column("times", True)]
    content = table("What torch.compile took, and could not do", columns, rows[:REASONS], is_caption_hidden=True)
    return section(names, "compilation", "Compilation", content, left_out(len(rows) - REASONS, "are"))


def memory(facts: Facts, names: Names) -> Section | None:
    """The requests of recorded steps to the allocator."""
    churns = facts.trace.of(AllocatorChurn)
    if not churns:
        return None
    columns = [
        Column("GPU"), Column("peak", True), Column("allocations/step", True), Column("cudaMalloc/step", True),
        Column("cudaFree/step", True), Column("retries", True),
    ]  # fmt: skip
    rows = [
        (
            str(churn.device),
            size(churn.peak_bytes),
            times(churn.allocations / max(churn.steps, 1)),
            times(churn.segments_allocated / max(churn.steps, 1)),
            times(churn.segments_freed / max(churn.steps, 1)),
            f"{churn.retries:,}",
        )
        for churn in churns[:16]
    ]
    steady = all(not (churn.segments_allocated or churn.segments_freed or churn.retries) for churn in churns)
    lead = "Nothing was asked of the driver: the allocator's cache is in a steady state." if steady else (
        "In a steady state nothing is asked of the driver: cudaMalloc takes long, and cudaFree waits for the GPU."
    )  # fmt: skip
    content = table("Memory of the GPU", columns, rows, is_caption_hidden=True, class_="narrow")
    return section(names, "memory", "Memory", tag("p", lead, class_="lead"), content, _held(facts))


def _held(facts: Facts) -> Content:
    """The lines that held memory when most was in use in a step."""
    held = facts.trace.of(HeldMemory)
    if not held:
        return ""
    most = sum(each.bytes for each in held)
    columns = [Column("Line"), Column("held", True), Column("of it", True), Column("allocations", True)]
    rows: list[Sequence[Content]] = [
        (
            place_name(each.place.file, each.place.line) if each.place else without_line(each),
            size(each.bytes),
            percent(share(each.bytes, most)),
            f"{each.count:,}" if each.count else "",
        )
        for each in held[:HOLDERS]
    ]
    caption = f"In use when most was, {size(most)}, in one step"
    return table(caption, columns, rows, class_="narrow")
