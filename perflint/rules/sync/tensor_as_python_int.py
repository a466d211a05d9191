"""TPF119: a GPU tensor that torch or Python needs as an integer."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Effect, Finding, Severity
from perflint.rules.base import Calls, CallSite, Group, Rule, SubscriptSite, often, shown
from perflint.rules.sync._as_numbers import TAKERS, taken_as_numbers


class TensorAsPythonInt(Rule):
    """
    ## What it does
    Finds GPU tensors that are used as Python numbers: the bounds of a slice (`x[:, :n]`), a
    zero-dimensional index, the index of a list or of a `ModuleList`, the arguments of `range`, sizes
    (`torch.zeros(n)`, `x.view(n, -1)`, `x.split(n)`), `torch.arange(n)`, `x.topk(k)`, and factors, bounds and
    probabilities: `x.add_(y, alpha=t)`, `x.uniform_(0, t)`, `dropout(x, p=t)`. Which arguments of torch are read in
    this way was found by calling each function with a number and with a tensor.

    ## Why is this bad
    Each use reads the number from the GPU. The CPU waits until everything before it has been
    computed, as with `.item()`, but the wait is harder to see.

    ## When it is fine
    Sizes from `x.shape` are Python numbers; tensors on the CPU can be read at once. Positions of
    one dimension or more (`x[indices]`) stay on the GPU. Operands may be tensors: `x * t`, `x.lerp(y, t)`,
    `x.clamp(max=t)`; with a number as the other bound, `x.clamp(0, t)` reads the tensor.

    ## Bad
    ```python
    import torch

    class Trim(torch.nn.Module):
        def forward(self, x, lengths: torch.Tensor):
            longest = lengths.max()
            return x[:, :longest]
    ```

    ## Good
    ```python
    import torch

    class Trim(torch.nn.Module):
        def forward(self, x, longest: int):
            return x[:, :longest]
    ```

    ## Fix safety
    No fix: let the collate function return the number next to the tensor, or keep tables that are
    indexed with numbers on the CPU.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line, once for each number; a trace shows
    `aten::_local_scalar_dense` with a `Memcpy DtoH` of a few bytes.

    ## References
    - [torch.cuda.set_sync_debug_mode](https://docs.pytorch.org/docs/stable/generated/torch.cuda.set_sync_debug_mode.html)
    """

    code, name = "TPF119", "tensor-as-python-int"
    effect, severity = Effect.SYNC, Severity.WARNING
    group = Group.DECISION
    measured = ("tensor-as-python-int-gpt", "tensor-as-python-int-gpt-host-work", "tensor-as-python-int-policy")
    listens = (Calls(*TAKERS), SubscriptSite)

    def check(self, site: CallSite | SubscriptSite) -> Iterator[Finding]:
        numbers = taken_as_numbers(site)
        if not numbers:
            return
        number, confidence = numbers[0]
        yield self.finding(
            site,
            f"{shown(site)} uses the GPU tensor {shown(site, number)} as a Python number: the CPU waits{often(site)}",
            confidence=confidence,
            help=(
                "Get the number on the CPU, where it is known first: from a shape, the collate function or the "
                "settings."
            ),
        )
