"""TPF106: a test for an empty mask in front of masked assignments."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Fix, Safety, Severity
from perflint.fixes.edits import indentation, replace, with_last_comments
from perflint.rules._memory.bodies import memory_around
from perflint.rules._memory.flows import flow_around
from perflint.rules._memory.operators import inference_around, is_fresh, shared
from perflint.rules._memory.uses import HARMLESS, Fate, Uses
from perflint.rules.base import Calls, CallSite, Rule, TruthSite, often, shown
from perflint.rules.sync._guards import Guard, any_guard
from perflint.rules.sync._same_shape import has_shape_of
from perflint.rules.sync._scalars import NAN_CHECK, READS, SCALAR_READ, TRUTH_OF_TENSOR, read_at
from perflint.semantics.around import loops_around
from perflint.semantics.binders import Loop
from perflint.semantics.dataflow.flow import Bound
from perflint.semantics.model import Model
from perflint.semantics.values import Const, Kind, Tensor
from perflint.source.concrete import code, cst

_MOST_USES = 200


class RedundantAnyGuard(Rule):
    """
    ## What it does
    Finds `if mask.any():` (also `.sum() > 0`, `torch.any(mask)`, `bool(…)`, `.item()`) whose body only
    writes numbers through that mask: `x[mask] = 0.0`, `x.masked_fill_(mask, 0.0)`.

    ## Why is this bad
    The assignment does nothing if the mask is empty, and it does not make the CPU wait: it becomes
    `masked_fill_`. The test in front of it does wait. It costs a sync to save one small kernel.

    ## When it is fine
    On the CPU, and in code that runs rarely. If the body does more than write numbers, reads
    through the mask, or the `if` has an `else`, the test decides something and is not reported.

    ## Bad
    ```python
    import torch

    def clean(x: torch.Tensor) -> torch.Tensor:
        x = x.cuda().relu()
        mask = torch.isnan(x)
        if mask.any():
            x[mask] = 0.0
        return x
    ```

    ## Good
    ```python
    import torch

    def clean(x: torch.Tensor) -> torch.Tensor:
        x = x.cuda().relu()
        mask = torch.isnan(x)
        x[mask] = 0.0
        return x
    ```

    ## Fix safety
    Without the guard autograd sees an in-place operation even if the mask is empty. That raises for
    a leaf that requires grad, and later for a tensor whose value a later backward still needs:
    autograd saves indices, labels and masks, too. Safe if everything that is written is a tensor of
    integers or booleans that the function created, that nothing else holds and that no earlier
    operation has saved, if the mask is computed from it, and the number fits any integer. Unsafe
    otherwise.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the `if` and not at the assignment.

    ## References
    - [torch.Tensor.masked_fill_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_fill_.html)
    """

    code, name = "TPF106", "redundant-any-guard"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("redundant-any-guard-gpt", "redundant-any-guard-gpt-host-work", "redundant-any-guard-policy")
    listens = (TruthSite, Calls(*READS))
    replaces = (SCALAR_READ, TRUTH_OF_TENSOR, NAN_CHECK)

    def check(self, site: TruthSite | CallSite) -> Iterator[Finding]:
        read = read_at(site)
        guard = None if read is None else any_guard(site.model, read.node)
        if read is None or guard is None:
            return
        mask = shown(site, guard.mask)
        yield self.finding(
            site,
            f"{shown(site, read.node)} makes the CPU wait to learn whether {mask} is empty, and the assignment"
            f" below does nothing if it is{often(site)}",
            confidence=read.confidence,
            help="Remove the `if` and keep its body.",
            fix=_fix(site.model, guard),
        )


def _fix(model: Model, guard: Guard) -> Fix:
    """The body in place of the `if`, with all its comments."""
    source = model.source
    span = with_last_comments(source, source.span(guard.statement))
    written = cst.parse_statement(source.segment(span) + "\n")
    assert isinstance(written, cst.If)
    # Only the beginnings of statements move: what looks like a line may be part of a string or comment.
    edit = replace(source, span, f"\n{indentation(source, span.line)}".join(_lines(written)))
    return Fix("Drop the `if`", _safety(model, guard), (edit,))


def _lines(statement: cst.If) -> Iterator[str]:
    body = statement.body
    if not isinstance(body, cst.IndentedBlock):
        # A backslash behind the colon is part of this white space.
        yield code(body.with_changes(leading_whitespace=cst.SimpleWhitespace(""))).rstrip("\r\n")
        return
    if body.header.comment is not None:
        yield body.header.comment.value
    for part in body.body:
        assert isinstance(part, cst.SimpleStatementLine)
        yield from (line.comment.value for line in part.leading_lines if line.comment is not None)
        yield code(part.with_changes(leading_lines=())).rstrip("\r\n")
    yield from (line.comment.value for line in body.footer if line.comment is not None)


def _safety(model: Model, guard: Guard) -> Safety:
    proven = all(
        _is_own(model, guard, tensor) and has_shape_of(model, guard.mask, tensor, so_far=True) and _fits(model, number)
        for tensor, number in zip(guard.stored, guard.numbers, strict=True)
    )
    return Safety.SAFE if proven else Safety.UNSAFE


def _fits(model: Model, number: ast.expr) -> bool:
    """True if any integer or boolean tensor takes a number, without an error where the mask is empty."""
    value = model.value(number)
    return isinstance(value, Const) and isinstance(value.value, int) and -128 <= value.value < 128


def _is_own(model: Model, guard: Guard, tensor: ast.expr) -> bool:
    """True if a tensor of integers or booleans is the function's own, and autograd keeps nothing of it at the guard."""
    value = model.value(tensor)
    if not isinstance(value, Tensor) or value.kind not in (Kind.INT, Kind.BOOL) or not isinstance(tensor, ast.Name):
        return False
    memory = memory_around(model, tensor)
    groups = memory.group(tensor)
    members = [member for group in groups for member in memory.members(group)]
    bounds = [each for each in members if isinstance(each, Bound)]
    if not bounds or not memory.is_own(tensor) or not all(_is_made_here(model, guard, each) for each in bounds):
        return False
    last: ast.stmt = guard.statement
    for loop in loops_around(model, guard.statement):
        if isinstance(loop, (ast.For, ast.While)) and _outlives_turn(model, tensor, bounds, loop):
            last = loop
    uses = Uses(model)
    for use in (use for each in bounds for use in each.uses):
        if isinstance(use.ctx, ast.Load) and use.lineno <= (last.end_lineno or 0):
            uses.follow(use)
    return not uses.saved and uses.fates <= HARMLESS | {Fate.WRITTEN}


def _outlives_turn(model: Model, tensor: ast.Name, bounds: list[Bound], loop: Loop) -> bool:
    """True if a tensor may be the same in several iterations of a loop."""
    flow = flow_around(model, tensor)
    for bound in bounds:
        reach = flow.reach(bound, _MOST_USES)
        line = getattr(bound.node, "lineno", loop.lineno)
        if reach is None or loop in reach.loops or not loop.lineno <= line <= (loop.end_lineno or 0):
            return True
    return False


def _is_made_here(model: Model, guard: Guard, bound: Bound) -> bool:
    """True if a name gets a new tensor, a view of one of the same function, or is only written to."""
    if bound.node is None or bound.value is None:
        return not isinstance(bound.node, ast.arg)
    if inference_around(model, bound.node) is not inference_around(model, guard.statement):
        # A tensor of inference mode cannot be written to outside.
        return False
    return bound.whole and (is_fresh(model, bound.value) or isinstance(shared(model, bound.value), ast.Name))
