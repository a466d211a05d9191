"""TPF106: a test for an empty mask in front of masked assignments."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflint.findings import Effect, Finding, Fix, Safety, Severity
from perflint.fixes.edits import indentation, replace, with_last_comments
from perflint.rules._words import often
from perflint.rules.base import Calls, Rule
from perflint.rules.sync._guards import Guard, any_guard
from perflint.rules.sync._scalars import READS, REDUNDANT_ANY_GUARD, owned
from perflint.semantics.sites import CallSite, TruthSite
from perflint.semantics.values import Kind, Tensor
from perflint.source.concrete import code, cst
from perflint.source.quoting import quoted

if TYPE_CHECKING:
    from perflint.semantics.model import Model


class RedundantAnyGuard(Rule):
    """
    ## What it does
    Finds `if mask.any():` (also `.sum() > 0`, `torch.any(mask)`, `bool(…)`, `.item()`) whose body only
    writes numbers through that mask: `x[mask] = 0.0`, `x.masked_fill_(mask, 0.0)`.

    ## Why is this bad
    The assignment does nothing where the mask is empty, and does not make the host wait: it becomes
    `masked_fill_`. The test in front of it does wait. It costs a sync to save one small kernel.

    ## When it is fine
    On the host, and in code that runs seldom. Where the body does more than write numbers, reads
    through the mask, or the `if` has an `else`: then the test decides something.

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
    Safe where everything written to holds integers or booleans. Unsafe for floating-point tensors:
    without the guard autograd sees an in-place operation even if the mask is empty, which raises
    for a leaf that requires grad, and for a tensor whose value some backward still needs.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the `if` and not at the assignment.

    ## References
    - [torch.Tensor.masked_fill_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_fill_.html)
    """

    code, name = REDUNDANT_ANY_GUARD, "redundant-any-guard"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("redundant-any-guard-gpt", "redundant-any-guard-gpt-host-work", "redundant-any-guard-policy")
    listens = (TruthSite, Calls(*READS))

    def nominate(self, site: TruthSite | CallSite) -> bool:
        return owned(site, self.code) is not None

    def check(self, node: cst.CSTNode, site: TruthSite | CallSite) -> Iterator[Finding]:
        read = owned(site, self.code)
        guard = None if read is None else any_guard(site.model, read.node)
        if read is None or guard is None:
            return
        mask = quoted(site.text(guard.mask))
        yield self.finding(
            site,
            f"{quoted(site.text(read.node))} makes the CPU wait to learn whether {mask} is empty, and the assignment"
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
    lines = textwrap.indent("\n".join(_lines(written)), indentation(source, span.line))
    edit = replace(source, span, lines.lstrip())
    return Fix("Drop the `if`", _safety(model, guard), (edit,))


def _lines(statement: cst.If) -> Iterator[str]:
    body = statement.body
    if not isinstance(body, cst.IndentedBlock):
        yield code(body).strip()
        return
    if body.header.comment is not None:
        yield body.header.comment.value
    for part in body.body:
        yield code(part).strip()
    yield from (line.comment.value for line in body.footer if line.comment is not None)


def _safety(model: Model, guard: Guard) -> Safety:
    for tensor in guard.stored:
        value = model.value(tensor)
        if not isinstance(value, Tensor) or value.kind not in (Kind.INT, Kind.BOOL):
            return Safety.UNSAFE
    return Safety.SAFE
