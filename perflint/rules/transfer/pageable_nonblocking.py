"""TPF202: `non_blocking=True` from memory that is not pinned."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity, weakest
from perflint.rules._advice import uploaded
from perflint.rules._memory.flows import behind
from perflint.rules.base import Calls, CallSite, Rule, often, shown
from perflint.rules.placement import creator, move
from perflint.semantics.structure import keyword

_WRAPS = frozenset({"torch.from_numpy", "torch.frombuffer"})


class PageableNonblocking(Rule):
    """
    ## What it does
    Finds `.to(device, non_blocking=True)` and `.cuda(non_blocking=True)` of tensors that the same
    expression creates in pageable memory: `torch.from_numpy(a).to(d, non_blocking=True)`,
    `torch.tensor(values).cuda(non_blocking=True)`.

    ## Why is this bad
    Only pinned memory can be copied while the CPU continues. From pageable memory the driver first
    copies into its own buffer, and the call returns when that is done. `non_blocking=True` has no
    effect then, and it hides the copy from `torch.cuda.set_sync_debug_mode`.

    ## When it is fine
    Small tensors, which the driver accepts at once.

    ## Bad
    ```python
    import torch

    def send(array):
        return torch.from_numpy(array).to("cuda", non_blocking=True)
    ```

    ## Good
    ```python
    import torch

    def send(array, pinned: torch.Tensor):
        pinned.copy_(torch.from_numpy(array))
        return pinned.to("cuda", non_blocking=True)
    ```

    ## Fix safety
    No fix: a pinned buffer must not be overwritten before the copy has read it.

    ## How a GPU shows it
    The copy is `Memcpy HtoD (Pageable -> Device)` in a trace, and the CPU spends it in
    `cudaMemcpyAsync`.

    A trace records the bytes of the copy, and whether its memory is pinned. Pinned memory, or a tensor
    that stays on its device, refutes the finding; small copies lose nothing by the measured rate.

    ## References
    - [A guide on good usage of non_blocking and
      pin_memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """

    code, name = "TPF202", "pageable-nonblocking"
    effect, severity = Effect.TRANSFER, Severity.WARNING
    measured = ("copy-pageable-nonblocking-resnet50", "copy-pageable-nonblocking-resnet50-host-work")
    costs = "images copied from pageable memory make training of a ResNet-50 {0} slower"
    listens = (Calls("torch.Tensor.to", "torch.Tensor.cuda"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        confidence = _confidence(site)
        if confidence is None or not isinstance(site.node.func, ast.Attribute):
            return
        yield self.finding(
            site,
            f"{shown(site)} copies from pageable memory: the CPU waits in spite of `non_blocking`{often(site)}",
            confidence=confidence,
            help=uploaded(site, site.node.func.value, is_asynchronous=True),
        )


def _confidence(site: CallSite) -> Confidence | None:
    moved = move(site)
    if moved is None or not isinstance(site.node.func, ast.Attribute):
        return None
    if not isinstance(moved.non_blocking, ast.Constant) or moved.non_blocking.value is not True:
        return None
    receiver = behind(site.model, site.node.func.value)
    made = creator(site, receiver)
    wraps = isinstance(receiver, ast.Call) and site.model.target(receiver) in _WRAPS
    if isinstance(receiver, ast.Call) and receiver.args and site.model.target(receiver) in (*_WRAPS, "torch.tensor"):
        first = receiver.args[0]
        if isinstance(first, (ast.List, ast.Tuple)) and not first.elts:
            # Without elements nothing is copied.
            return None
    if not wraps and (made is None or keyword(made, "pin_memory") is not None):
        return None
    return weakest(moved.confidence, Confidence.HIGH)
