"""TPF135: a Python number stored at single positions of a device tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Safety, Severity, lowered
from perflint.fixes.edits import replace
from perflint.rules._words import often
from perflint.rules.base import Rule
from perflint.rules.sync._indices import Index, indices, parts
from perflint.semantics.sites import SubscriptSite, device_confidence
from perflint.semantics.values import Array, Evidence, Tensor, scalar_type
from perflint.source.concrete import cst
from perflint.source.quoting import quoted

_NUMBERS = ("int", "float", "bool", "complex")
_SURELY_COMPLETE = 3
"""Integers in an index that nobody writes for a part of a tensor."""


class NumberStore(Rule):
    """
    ## What it does
    Finds stores of a Python number into a GPU tensor with an index that is one element
    (`table[i, j] = 1.0`) or a tensor of positions (`x[indices] = 0`).

    ## Why is this bad
    torch creates a tensor from the number on the CPU and copies it to the GPU, and the CPU waits
    for the copy. A loop over elements repeats this for each of them.

    ## When it is fine
    Stores to slices (`x[:, 0] = 1.0`, `x[2:4] = 0`) and through a boolean mask fill with a kernel.
    Tensors on the CPU; tables that are built once.

    ## Bad
    ```python
    import torch

    class Affine(torch.nn.Module):
        def forward(self, x: torch.Tensor, angle: float):
            matrix = torch.eye(3, device=x.device)
            matrix[0, 2] = angle
            return x @ matrix
    ```

    ## Good
    ```python
    import torch

    class Affine(torch.nn.Module):
        def forward(self, x: torch.Tensor, angle: float):
            matrix = torch.eye(3, device=x.device)
            matrix[0, 2].fill_(angle)
            return x @ matrix
    ```

    ## Fix safety
    `x[i, j] = number` becomes `x[i, j, None] = number`: a store to a view with one dimension, which
    torch fills. It is safe if x is certainly a tensor, and unsafe otherwise: a list or an object of
    your own class may not accept the index. No fix is offered if a position may be a boolean,
    because `x[True, 0]` is a copy. `x[i, j].fill_(number)` is fast too, but is evaluated in another
    order, and raises where float16 cannot hold the number. `x[indices] = number` gets no fix:
    `x.index_fill_(0, indices, number)` needs positions of one dimension and int64.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line (torch 2.11); a trace shows a
    `Memcpy HtoD (Pageable -> Device)` of a few bytes.

    ## References
    - [Tensor.fill_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.fill_.html)
    - [Tensor.index_fill_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_fill_.html)
    """

    code = "TPF135"
    name = "number-store"
    effect = Effect.SYNC
    severity = Severity.WARNING
    measured = ("number-store-gpt", "number-store-gpt-host-work", "number-store-policy")
    listens = (SubscriptSite,)

    def nominate(self, site: SubscriptSite) -> bool:
        return _confidence(site) is not None

    def check(self, node: cst.CSTNode, site: SubscriptSite) -> Iterator[Finding]:
        confidence = _confidence(site)
        if confidence is None or site.stored is None:
            return
        positions = not {Index.POSITIONS, Index.TENSOR}.isdisjoint(indices(site))
        method = "index_fill_" if positions else ".fill_"
        cure = f"Use `{method}`, which takes the number without a copy."
        yield self.finding(
            site,
            f"Storing {quoted(site.text(site.stored))} in {quoted(site.text(site.node))} copies the number to the GPU: "
            f"the CPU waits for the copy{often(site)}",
            confidence=confidence,
            help=cure,
            fix=None if positions else _fix(node, site),
        )


def _confidence(site: SubscriptSite) -> Confidence | None:
    if site.mode != "store" or site.stored is None:
        return None
    stored, receiver = site.value(site.stored), site.value(site.node.value)
    if not all(scalar_type(member) in _NUMBERS for member in stored.members) or receiver.tensor is None:
        return None
    confidence = device_confidence(receiver)
    found = list(indices(site))
    if confidence is None:
        return None
    if set(found) <= {Index.POSITIONS, Index.TENSOR, Index.INTEGER, Index.VIEW}:
        # Of two tensors neither is a mask that `masked_fill_` could take.
        if Index.POSITIONS in found or found.count(Index.TENSOR) > 1:
            return confidence
    if any(index is not Index.INTEGER for index in found):
        return None
    rank = receiver.tensor.rank
    if rank is not None:
        return confidence if rank == len(found) else None
    if len(found) == 1:
        return None
    return lowered(confidence) if len(found) >= _SURELY_COMPLETE else Confidence.LOW


def _fix(node: cst.CSTNode, site: SubscriptSite) -> Fix | None:
    """The store to a view of the one element, which torch fills."""
    assignment, found = site.model.parent(site.node), parts(site)
    if not isinstance(assignment, ast.Assign) or site.node not in assignment.targets:
        return None
    # A tuple in brackets or behind a name stays one; a boolean selects a copy.
    if not isinstance(node, cst.Subscript) or len(node.slice) != len(found):
        return None
    if not all(scalar_type(part.value) == "int" or isinstance(part.value, Array) for part in found):
        return None
    receiver = site.value(site.node.value)
    sure = isinstance(receiver, Tensor) and receiver.evidence >= Evidence.ANNOTATION
    *others, last = node.slice
    between = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    added = cst.SubscriptElement(cst.Index(cst.Name("None")), comma=last.comma)
    new = node.with_changes(slice=[*others, last.with_changes(comma=between), added])
    edit = replace(site.model.source, site.span, new)
    return Fix("Store to a view of the element", Safety.SAFE if sure else Safety.UNSAFE, (edit,))
