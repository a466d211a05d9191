"""Rules about torch.compile and CUDA graphs."""

from __future__ import annotations

import ast
import re

from perflint.findings import Effect, Ruling, Span, Verdict
from perflint.tracer.events import CudagraphSkip
from perflint.tracer.judges.base import Case, Judge, times, total

LIMIT = 8
"""Times that torch.compile compiles a function again by default."""
FEWEST_STEPS = 3
"""Steps after which a number that changes in each of them has had to be compiled again."""
_BREAKS = ("TPF701", "TPF702", "TPF703", "TPF704", "TPF705", "TPF706", "TPF707", "TPF708", "TPF709", "TPF375")
_BUILT = Verdict(
    Ruling.UNDECIDED,
    "a trace does not show whether the extension was compiled or found built; `load(..., verbose=True)` prints it",
)
_NAMED_FILE = re.compile(r'File "([^"]+)", line (\d+)')


def _graph_break(case: Case) -> Verdict | None:
    """The records of graph breaks were read before: here are attempts that failed, and lines without a break."""
    if case.finding.effect is not Effect.GRAPH_BREAK:
        return _BUILT if case.ran else None
    if failed := case.facts("compile.gave-up"):
        why = f"torch.compile gave up on the whole function here: {failed[0].detail}"
        return Verdict(Ruling.CONFIRMED, why)
    if case.facts("compile.traced"):
        return Verdict(Ruling.REFUTED, "torch.compile traced the line, and no graph ended there")
    return None


def _hot_compile(case: Case) -> Verdict | None:
    seen = case.facts("compile.called")
    if not seen:
        return None
    in_steps, calls = sum(each.hits.steps for each in seen), sum(map(total, seen))
    if not in_steps:
        return Verdict(Ruling.NO_COST, f"`torch.compile` was called {times(calls)}, but in no recorded step")
    if in_steps == 1 and case.steps > 2:
        return Verdict(Ruling.REFUTED, f"`torch.compile` was called once in {case.steps} steps")
    per_step = case.per_step(seen)
    return Verdict(Ruling.CONFIRMED, f"`torch.compile` was called {times(per_step)} a step", per_step=per_step)


def _counter(case: Case) -> Verdict | None:
    """TPF712: a recompilation that names the number was read before, so here no guard on it failed."""
    if not case.facts("compile.traced") or case.trace.header.steps < FEWEST_STEPS:
        return None
    return Verdict(Ruling.REFUTED, f"in {case.steps} steps nothing was compiled again because of this number")


def _dropped(case: Case) -> Verdict | None:
    if not case.facts("compile.unused"):
        return None
    return Verdict(Ruling.CONFIRMED, "the result was freed before anything was compiled")


def _hidden(case: Case) -> Verdict | None:
    """Errors that were hidden, or functions that were compiled more often than the default permits."""
    if not case.ran or not _has_compiled(case):
        return None
    if "suppress_errors" in case.source.segment(case.finding.span):
        failed = case.of_process("compile.failed")
        if failed:
            return Verdict(Ruling.CONFIRMED, f"hidden {times(sum(map(total, failed)))}: {failed[0].detail}")
        return Verdict(Ruling.REFUTED, "functions were compiled, and no error was hidden")
    again = case.of_process("compile.recompiled")
    most = max((each.bytes for each in again), default=0)
    if most >= LIMIT:
        return Verdict(Ruling.CONFIRMED, f"a function was compiled again {times(most)}; the default permits {LIMIT}")
    return Verdict(Ruling.REFUTED, f"no function was compiled again more than {times(most)}, which the default permits")


def _has_compiled(case: Case) -> bool:
    """True if the compiler traced code of the user's in this run."""
    return any(each.fact == "compile.traced" for _, each in case.observed) or bool(
        case.of_process("compile.recompiled", "compile.failed")
    )


def _mutated(case: Case) -> Verdict | None:
    """The compiler names the lines that change an input; without any skip, the graphs were used."""
    skips = [each.reason for each in case.trace.of(CudagraphSkip) if "mutated inputs" in each.reason]
    lines = range(case.finding.span.line, case.finding.span.end_line + 1)
    for reason in skips:
        if any(int(line) in lines and _is_file(case, file) for file, line in _NAMED_FILE.findall(reason)):
            return Verdict(Ruling.CONFIRMED, "the compiler used no CUDA graph because of this line")
    is_traced = bool(case.facts("compile.traced")) and bool(case.trace.header.devices)
    if is_traced and not skips and not case.of_process("cudagraph.skipped"):
        return Verdict(Ruling.REFUTED, "the line was compiled, and no CUDA graph was left out")
    return None


def _is_file(case: Case, name: str) -> bool:
    return name.replace("\\", "/").rpartition("/")[2] == case.finding.path.replace("\\", "/").rpartition("/")[2]


def _captured(case: Case) -> Verdict | None:
    """The block that a CUDA graph recorded ended well, or the finding's code raised."""
    if raised := case.facts("capture.raised"):
        return Verdict(Ruling.CONFIRMED, f"the capture ended here with {raised[0].detail}")
    block = _block_around(case)
    if block is not None and case.ran and case.facts("capture.done", within=block):
        return Verdict(Ruling.REFUTED, "a CUDA graph recorded the block without an error")
    return None


def _block_around(case: Case) -> Span | None:
    """The heads of the `with` statements around a finding."""
    mine = case.finding.span
    for node in ast.walk(case.source.tree):
        if isinstance(node, (ast.With, ast.AsyncWith)) and case.source.span(node).overlaps(mine):
            first, last = case.source.span(node.items[0].context_expr), case.source.span(node.items[-1].context_expr)
            head = Span(first.line, first.column, last.end_line, last.end_column)
            if case.facts("capture.done", "capture.failed", within=head):
                return head
    return None


JUDGES: dict[str, Judge] = {
    **dict.fromkeys(_BREAKS, _graph_break),
    "TPF710": _dropped,
    "TPF711": _hot_compile,
    "TPF712": _counter,
    "TPF713": _hidden,
    "TPF801": _captured,
    "TPF807": _mutated,
    "TPF809": _captured,
}
