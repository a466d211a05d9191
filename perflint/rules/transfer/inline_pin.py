"""TPF203: memory pinned for a single copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity, weakest
from perflint.rules._memory.flows import behind
from perflint.rules.base import Calls, CallSite, Rule, often, shown
from perflint.rules.placement import Move, move


class InlinePin(Rule):
    """
    ## What it does
    Finds `x.pin_memory().to(device)`: memory is pinned for a single copy.

    ## Why is this bad
    Pinning copies the tensor once more, on the thread that should launch kernels. But this cost
    does not show in measurements. Torch keeps pinned memory for the next call, and on an H200 with
    torch 2.11 copies of 64 kB, 4 MB and 38 MB were faster this way than from pageable memory, even
    with another size each time. Only the copy on the CPU can still be saved, by another thread. So
    the severity is info.

    ## When it is fine
    No `DataLoader` creates the batch: then this is the fastest way.

    ## Bad
    ```python
    import torch

    def send(x: torch.Tensor):
        return x.pin_memory().to("cuda", non_blocking=True)
    ```

    ## Good
    ```python
    import torch

    def batches(dataset):
        for x in torch.utils.data.DataLoader(dataset, pin_memory=True):
            yield x.to("cuda", non_blocking=True)
    ```

    ## Fix safety
    No fix: only the owner of the data can pin it elsewhere.

    ## How a GPU shows it
    A trace shows `cudaHostAlloc` and a copy on the CPU before the `Memcpy HtoD (Pinned -> Device)`.

    A trace records how many bytes are pinned. A tensor that was pinned already refutes the finding;
    otherwise the measurements above say that it costs nothing.

    ## References
    - [A guide on good usage of non_blocking and
      pin_memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """

    code, name = "TPF203", "inline-pin"
    effect, severity = Effect.TRANSFER, Severity.INFO
    measured = ("copy-inline-pin-resnet50", "copy-inline-pin-resnet50-host-work")
    listens = (Calls("torch.Tensor.to", "torch.Tensor.cuda"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        moved = _pinned(site)
        if moved is None:
            return
        yield self.finding(
            site,
            f"{shown(site)} pins memory on the thread that launches kernels{often(site)}",
            confidence=weakest(Confidence.MEDIUM, moved.confidence),
            help=(
                "Pin on another thread, as a DataLoader with workers and `pin_memory=True` does. Without any pinning "
                "the copy is slower."
            ),
        )


def _pinned(site: CallSite) -> Move | None:
    """The move of a tensor that was pinned just for it."""
    receiver = None if site.owner is None else behind(site.model, site.owner)
    if not isinstance(receiver, ast.Call) or site.model.target(receiver) != "torch.Tensor.pin_memory":
        return None
    return move(site)
