"""Rules about switches of the whole process, debugging, and APIs that are deprecated or missing."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from perflint.findings import Effect, Ruling, Verdict
from perflint.rules.registry import known_rules
from perflint.tracer.events import CandidateLine, ModuleCall, Observation
from perflint.tracer.judges.base import Case, Judge, by_facts, times, total

_CUDNN_LAYERS = ("torch.nn.modules.conv.", "torch.nn.modules.rnn.", "torch.nn.modules.batchnorm.")
_NO_STEPS = Verdict(Ruling.UNDECIDED, "no step was recorded; mark the steps with `perflint.step()`")
_NO_BACKWARD = Verdict(Ruling.UNDECIDED, "no backward pass was seen; trace the training")
_NOT_STARTED = Verdict(Ruling.UNDECIDED, "CUDA was not started in this run; trace on a GPU")


def _switch(case: Case) -> Verdict | None:
    """The state at the ends of the steps decides, not the line that sets it."""
    if case.ran is False:
        return None
    text = case.source.segment(case.finding.span)
    if case.finding.effect is Effect.SYNC:
        if case.trace.header.simulated or not case.has_gpu:
            return _NOT_STARTED
        slow, fast, said = "launches.blocking", "launches.not-blocking", "each launch waited for its kernel"
    elif "cudnn" in text:
        slow, fast, said = "cudnn.off", "cudnn.on", "cuDNN was off"
    else:
        slow, fast, said = "algorithms.deterministic", "algorithms.any", "only deterministic algorithms were allowed"
    on, off = (sum(map(total, case.of_process(name))) for name in (slow, fast))
    if not on + off:
        return _NO_STEPS
    if not on:
        return Verdict(Ruling.REFUTED, f"in none of the {off} steps {said}")
    if slow == "cudnn.off" and case.trace.header.call_steps and not _uses_cudnn(case):
        return Verdict(Ruling.NO_COST, "cuDNN was off, but no convolution or recurrent layer was called")
    return Verdict(Ruling.CONFIRMED, f"in {on} of {on + off} steps {said}", per_step=on / (on + off))


def _uses_cudnn(case: Case) -> bool:
    """True if the program called a layer or a function that cuDNN would run."""
    layers = any(call.type.startswith(_CUDNN_LAYERS) for call in case.trace.of(ModuleCall))
    return layers or bool(case.of_process("convolution.called"))


def _debugging(case: Case) -> Verdict | None:
    if case.ran is False:
        return None
    text = case.source.segment(case.finding.span)
    if "emit_" in text:
        return by_facts({"ranges.recorded": "an event was recorded for each operation"}, {})(case)
    if "gradcheck" in text:
        return _timed(case, case.facts("gradients.checked"), "gradients were compared with finite differences")
    if seen := case.facts("anomaly.backward"):
        return _timed(case, seen, "a backward pass looked for NaN after each operation")
    if unchecked := case.facts("anomaly.unchecked"):
        often = times(case.per_step(unchecked))
        return Verdict(Ruling.REFUTED, f"a backward pass kept stacks, {often} a step, but looked for no NaN")
    plain = [each for each in case.trace.of(Observation) if each.fact == "backward.plain"]
    if not plain or case.ran is None:
        return _NO_BACKWARD
    return Verdict(Ruling.REFUTED, f"all {sum(map(total, plain))} backward passes ran without anomaly detection")


def _timed(case: Case, seen: Sequence[Observation], said: str) -> Verdict:
    if not seen:
        return Verdict(Ruling.UNDECIDED, "no such check was seen")
    per_step = case.per_step(seen)
    if not per_step:
        return Verdict(Ruling.NO_COST, f"{said}, but in no recorded step")
    calls = sum(map(total, seen))
    ms = sum(each.ms for each in seen) / calls
    return Verdict(Ruling.CONFIRMED, f"{said}, {times(per_step)} a step, for {ms:.3g} ms each", per_step=per_step)


def _deprecated(case: Case, code: str) -> Verdict | None:
    """The code ran, and the torch of the run deprecates it. It takes no time."""
    if not case.ran:
        return None
    torch = case.trace.header.torch.partition("+")[0]
    since = next(rule.since for rule in known_rules() if rule.code == code)
    if since is None or not torch:
        return None
    if tuple(int(part) for part in torch.split(".")[:2]) < since:
        return Verdict(Ruling.REFUTED, f"torch {torch}, which ran it, does not deprecate it yet")
    return Verdict(Ruling.CONFIRMED, f"the code ran under torch {torch}, which deprecates it")


def _missing(case: Case) -> Verdict | None:
    """The name is there if the next statement ran; it is missing if the program ended with the error."""
    if not case.ran:
        return None
    following = _next_line(case)
    if following is not None and _ran(case, following):
        return Verdict(Ruling.REFUTED, "the code ran, and so did the statement after it")
    error = "ImportError" if "ImportError" in case.finding.message else "AttributeError"
    if case.trace.header.ended == error:
        return Verdict(Ruling.CONFIRMED, f"the code ran, and the program ended with {error}")
    return None


def _next_line(case: Case) -> int | None:
    """The first line of the statement after that of the finding, in the same block."""
    for block in _blocks(case.source.tree):
        for statement, following in pairwise(block):
            if case.source.span(statement).overlaps(case.finding.span):
                # A part that may be left out, such as the branch of a condition, proves nothing.
                is_plain = isinstance(statement, (ast.Import, ast.ImportFrom)) or not any(
                    isinstance(part, (ast.IfExp, ast.BoolOp, ast.Lambda, ast.comprehension, ast.stmt))
                    for part in ast.walk(statement)
                    if part is not statement
                )
                return following.lineno if is_plain else None
    return None


def _blocks(tree: ast.AST) -> list[list[ast.stmt]]:
    """The blocks of a file, inner ones first."""
    found = [
        value
        for node in ast.walk(tree)
        for _, value in ast.iter_fields(node)
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt)
    ]
    return found[::-1]


def _ran(case: Case, line: int) -> bool:
    """True if a line below the finding ran. Lines between them are taken to be as they were in the trace."""
    mine = case.lines[0]
    then = line - case.finding.span.line + mine.line
    return any(each.file == mine.file and each.line == then for each in case.trace.of(CandidateLine))


def _timing(case: Case) -> Verdict | None:
    """A statement that is nothing but a wait comes right before the reading."""
    if not case.ran or not case.has_gpu:
        return None
    waits = {span for span, _ in case.syncs}
    for block in _blocks(case.source.tree):
        for before, statement in pairwise(block):
            if not case.source.span(statement).overlaps(case.finding.span):
                continue
            if isinstance(before, (ast.Expr, ast.Assign)) and case.source.span(before.value) in waits:
                return Verdict(Ruling.REFUTED, f"line {before.lineno} had waited for the GPU before the reading")
            return None
    return None


JUDGES: dict[str, Judge] = {
    "TPF358": _switch,
    "TPF378": _missing,
    "TPF606": _debugging,
    "TPF962": _timing,
    **{code: partial(_deprecated, code=code) for code in ("TPF377", "TPF901", "TPF902", "TPF903", "TPF904")},
}
