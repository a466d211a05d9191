"""TPF113: unique, bincount and histc of GPU tensors."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Effect, Finding, Severity
from perflint.rules.base import Calls, CallSite, Rule, often, shown
from perflint.rules.sync._data_sized import UNIQUE, data_sized

_BOUNDS = "Pass `min` and `max`, so that they are not searched for."
_CLASSES = "If the number of classes is known, count with `scatter_add_` into zeros."


class UniqueOnDevice(Rule):
    """
    ## What it does
    Finds `unique`, `unique_consecutive`, `bincount` (with `minlength` too) and `histc` without
    bounds on GPU tensors.

    ## Why is this bad
    Only the GPU knows the number of results, or the bounds of the bins. The CPU waits for it, and
    waits twice in `bincount` and `histc`. The varying size breaks CUDA graphs and compiled code.

    ## When it is fine
    Tensors on the CPU, preprocessing, `histc` with `min` and `max`.

    ## Bad
    ```python
    import torch

    class Usage(torch.nn.Module):
        def forward(self, codes: torch.Tensor):
            return torch.bincount(codes, minlength=512)
    ```

    ## Good
    ```python
    import torch

    class Usage(torch.nn.Module):
        def forward(self, codes: torch.Tensor):
            ones = torch.ones_like(codes)
            return torch.zeros(512, dtype=codes.dtype, device=codes.device).scatter_add_(0, codes, ones)
    ```

    ## Fix safety
    No fix: the number of classes must be known to choose a fixed size.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line; a trace shows `aten::bincount` or
    `aten::_unique2` with a `Memcpy DtoH` and a `cudaStreamSynchronize`.

    ## References
    - [torch.bincount](https://docs.pytorch.org/docs/stable/generated/torch.bincount.html)
    - [torch.unique](https://docs.pytorch.org/docs/stable/generated/torch.unique.html)
    """

    code, name = "TPF113", "unique-on-device"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("unique-on-device-gpt", "unique-on-device-gpt-host-work", "unique-on-device-policy")
    listens = (Calls(*UNIQUE),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if (confidence := data_sized(site)) is not None:
            yield self.finding(
                site,
                f"{shown(site)} needs a size or bounds on the CPU, which waits for the GPU{often(site)}",
                confidence=confidence,
                help=_BOUNDS if site.target.endswith(".histc") else _CLASSES,
            )
