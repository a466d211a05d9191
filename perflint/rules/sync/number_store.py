"""TPF135: a Python number stored at single positions of a device tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Safety, Severity, Span, lowered
from perflint.rules._order import may_swap
from perflint.rules._words import often
from perflint.rules.base import Rule
from perflint.rules.sync._indices import Index, indices, parts
from perflint.semantics.sites import SubscriptSite, device_confidence
from perflint.semantics.values import Array, Const, Evidence, Tensor, Value, scalar_type
from perflint.source.concrete import cst
from perflint.source.quoting import quoted

_NUMBERS = ("int", "float", "bool", "complex")
_LIMIT = 2**63
_SURELY_COMPLETE = 3
"""Integers in an index that nobody writes for a part of a tensor."""


class NumberStore(Rule):
    """
    ## What it does
    Finds stores of a Python number into a device tensor where the index is one element
    (`table[i, j] = 1.0`) or a tensor of positions (`x[indices] = 0`).

    ## Why is this bad
    torch makes a tensor of the number on the host and copies it to the device, and the host waits
    for the copy. In a loop over elements it does so for each of them.

    ## When it is fine
    Stores to slices (`x[:, 0] = 1.0`, `x[2:4] = 0`) and through a boolean mask fill with a kernel.
    Tensors on the host; tables that are made once.

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
    `x[i, j] = number` becomes `x[i, j].fill_(number)`: safe where x is certainly a tensor, unsafe
    elsewhere (an array's element has no `fill_`). It is also unsafe where the number is known to be
    complex or beyond int64, for which the two raise different errors or none. There is no fix where a position
    may be a boolean (`x[True, 0]` is a copy), and where evaluating the number may change the element
    that is meant, because an assignment evaluates the number first: `x[self.n, 0] = self.next()`.
    `x[indices] = number` gets no fix either: `x.index_fill_(0, indices, number)` needs positions of
    one dimension and int64.

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
            fix=None if positions else _fix(site),
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


def _fix(site: SubscriptSite) -> Fix | None:
    assignment = site.model.parent(site.node)
    if not isinstance(assignment, ast.Assign) or len(assignment.targets) != 1 or site.stored is None:
        return None
    # An assignment evaluates the number first, and a call the element. A boolean in an index copies the element.
    if not may_swap(site.model, site.stored, site.node.value, site.node.slice) or not _are_positions(site):
        return None
    receiver = site.value(site.node.value)
    sure = isinstance(receiver, Tensor) and receiver.evidence >= Evidence.ANNOTATION and _fits(site.value(site.stored))
    source = site.model.source
    element, number, whole = site.span, source.span(site.stored), source.span(assignment)
    between = Span(element.end_line, element.end_column, whole.end_line, whole.end_column)
    rest = source.segment(between).partition("=")[2].lstrip(" \t\\\r\n")
    # What stands in brackets of its own keeps them, with the comments inside.
    bracketed = (number.end_line, number.end_column) != (whole.end_line, whole.end_column)
    edit = Edit(between, f".fill_{rest}" if bracketed else f".fill_({rest})")
    return Fix("Fill the element", Safety.SAFE if sure else Safety.UNSAFE, (edit,))


def _are_positions(site: SubscriptSite) -> bool:
    """Whether each part of an index is an integer."""
    return all(scalar_type(part.value) == "int" or isinstance(part.value, Array) for part in parts(site))


def _fits(number: Value) -> bool:
    """Whether a number is none of those for which a store and `fill_` raise other errors: complex or beyond int64."""
    return all(
        scalar_type(member) != "complex"
        and not (isinstance(member, Const) and type(member.value) is int and not -_LIMIT <= member.value < _LIMIT)
        for member in number.members
    )
