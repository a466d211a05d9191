"""TPF203: memory pinned for a single copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Safety, Severity
from perflint.fixes.edits import replace
from perflint.rules.base import Calls, Rule
from perflint.rules.placement import Move, move, weakest
from perflint.rules.sync._words import often, quoted
from perflint.semantics.sites import CallSite
from perflint.source.concrete import cst


class InlinePin(Rule):
    """
    ## What it does
    Finds `x.pin_memory().to(device)`: memory that is pinned for the one copy that follows.

    ## Why is this bad
    Pinning allocates new host memory and copies the tensor into it, on the thread that should
    launch kernels, and costs more than the faster copy wins.

    ## When it is fine
    Memory that is pinned once and used again and again, and pinning on another thread, as the
    DataLoader does.

    ## Bad
    ```python
    import torch

    def send(x: torch.Tensor):
        return x.pin_memory().to("cuda", non_blocking=True)
    ```

    ## Good
    ```python
    import torch

    def send(x: torch.Tensor):
        return x.to("cuda", non_blocking=True)
    ```

    ## Fix safety
    Unsafe: the fix drops `pin_memory()`, so a copy with `non_blocking=True` comes from pageable
    memory, which the driver reads before the call returns.

    ## How a GPU shows it
    A trace shows `cudaHostAlloc` and a copy on the host before the `Memcpy HtoD (Pinned -> Device)`.

    ## References
    - [A guide on good usage of non_blocking and
      pin_memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """

    code = "TPF203"
    name = "inline-pin"
    effect = Effect.TRANSFER
    severity = Severity.WARNING
    listens = (Calls("torch.Tensor.to", "torch.Tensor.cuda"),)

    def nominate(self, site: CallSite) -> bool:
        return _pinned(site) is not None

    def check(self, node: cst.CSTNode, site: CallSite) -> Iterator[Finding]:
        moved = _pinned(site)
        if moved is None:
            return
        yield self.finding(
            site,
            f"{quoted(site.text(site.node))} allocates pinned memory and copies into it for a single transfer"
            f"{often(site)}",
            confidence=weakest(Confidence.MEDIUM, moved.confidence),
            help="Drop `pin_memory()`, pin in the DataLoader, or keep a pinned buffer.",
            fix=_fix(node, site),
        )


def _pinned(site: CallSite) -> Move | None:
    """The move of a tensor that was pinned in the same expression."""
    receiver = site.node.func.value if isinstance(site.node.func, ast.Attribute) else None
    if not isinstance(receiver, ast.Call) or site.model.target(receiver) != "torch.Tensor.pin_memory":
        return None
    return move(site)


def _fix(node: cst.CSTNode, site: CallSite) -> Fix | None:
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    pinned = node.func.value
    if not isinstance(pinned, cst.Call) or not isinstance(pinned.func, cst.Attribute) or pinned.lpar:
        return None
    new = node.with_changes(func=node.func.with_changes(value=pinned.func.value))
    return Fix("Copy without pinning", Safety.UNSAFE, (replace(site.model.source, site.span, new),))
