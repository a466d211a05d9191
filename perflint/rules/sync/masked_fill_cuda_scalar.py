"""TPF112: a fill value that is a tensor on the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Safety, Severity
from perflint.fixes.edits import replace
from perflint.fixes.imports import spell
from perflint.rules._order import may_swap
from perflint.rules._since import PROMOTING_WHERE
from perflint.rules.base import Calls, CallSite, Rule, SubscriptSite, device_confidence, often, shown
from perflint.rules.sync._indices import Index, parts
from perflint.source.concrete import code, cst

_METHODS = ("torch.Tensor.masked_fill", "torch.Tensor.masked_fill_")
_FUNCTION = "torch.masked_fill"


class MaskedFillCudaScalar(Rule):
    """
    ## What it does
    Finds `masked_fill` and `x[mask] = value` with a zero-dimensional GPU tensor as the value.

    ## Why is this bad
    The kernel takes the value as a number, so torch first reads it from the GPU and the CPU waits.

    ## When it is fine
    Python numbers and zero-dimensional CPU tensors need no wait.

    ## Bad
    ```python
    import torch

    class Mask(torch.nn.Module):
        def forward(self, x, mask: torch.Tensor):
            return x.masked_fill(mask, x.min())
    ```

    ## Good
    ```python
    import torch

    class Mask(torch.nn.Module):
        def forward(self, x, mask: torch.Tensor):
            return torch.where(mask, x.min(), x)
    ```

    ## Fix safety
    `x.masked_fill(mask, value)` becomes `torch.where(mask, value, x)`. Unsafe: if the value is of a
    wider kind than x, such as a float with integers, the result has the value's dtype; so does the
    result of an x without dimensions and a value of a wider dtype. The mask is computed before x.
    Forms that change x in place get no fix.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line; a trace shows
    `aten::_local_scalar_dense` below `aten::masked_fill_`.

    ## References
    - [Tensor.masked_fill_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_fill_.html)
    - [torch.where](https://docs.pytorch.org/docs/stable/generated/torch.where.html)
    """

    code, name = "TPF112", "masked-fill-cuda-scalar"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = (
        "masked-fill-cuda-scalar-gpt",
        "masked-fill-cuda-scalar-gpt-host-work",
        "masked-fill-cuda-scalar-policy",
    )
    listens = (Calls(*_METHODS, _FUNCTION), SubscriptSite)

    def check(self, site: CallSite | SubscriptSite) -> Iterator[Finding]:
        value, confidence = _value(site), _confidence(site)
        if confidence is None or value is None:
            return
        yield self.finding(
            site,
            f"{shown(site)} reads the fill value {shown(site, value)} from the GPU: the CPU waits{often(site)}",
            confidence=confidence,
            help="Use `torch.where(mask, value, x)`, which takes the value on the GPU, or fill with a Python number.",
            fix=_fix(site) if isinstance(site, CallSite) else None,
        )


def _value(site: CallSite | SubscriptSite) -> ast.expr | None:
    """The fill value."""
    if isinstance(site, CallSite):
        return site.argument("value", 2 if site.target == _FUNCTION else 1)
    if site.mode != "store":
        return None
    kinds = [part.kind for part in parts(site)]
    masks = kinds.count(Index.MASK)
    if masks != 1 or any(kind not in (Index.MASK, Index.VIEW, Index.INTEGER) for kind in kinds):
        return None
    return site.stored


def _confidence(site: CallSite | SubscriptSite) -> Confidence | None:
    node = _value(site)
    if node is None:
        return None
    value = site.value(node)
    if value.tensor is None or (isinstance(site, SubscriptSite) and value.tensor.rank != 0):
        return None
    return device_confidence(value)


def _fix(site: CallSite) -> Fix | None:
    if site.target == "torch.Tensor.masked_fill_" or site.node.keywords or site.has_unpacking:
        return None
    evaluated = [*site.node.args]
    if site.target != _FUNCTION:
        if site.owner is None:
            return None
        evaluated.append(site.owner)
    if not may_swap(site.model, *evaluated):
        return None
    where = spell(site.model.symbols, "torch.where", site.node)
    node = site.concrete
    operands = [code(argument.value) for argument in node.args]
    if site.target != _FUNCTION and isinstance(node.func, cst.Attribute):
        operands.insert(0, code(node.func.value))
    if where is None or len(operands) != 3:
        return None
    x, mask, value = operands
    return Fix(
        "Choose on the GPU",
        Safety.UNSAFE,
        (replace(site.model.source, site.span, f"{where.text}({mask}, {value}, {x})"),),
        where.imports,
        since=PROMOTING_WHERE,
    )
