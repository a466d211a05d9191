"""TPF115: one_hot without the number of classes."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Effect, Finding, Severity
from perflint.rules.base import Calls, CallSite, Rule, often, shown
from perflint.rules.sync._data_sized import ONE_HOT, data_sized


class OneHotNoClasses(Rule):
    """
    ## What it does
    Finds `torch.nn.functional.one_hot` of a GPU tensor without `num_classes`.

    ## Why is this bad
    The number of classes is then the greatest label plus one. The CPU waits for it, and the shape
    of the result changes with the batch.

    ## When it is fine
    Labels on the CPU; labels with an unknown number of classes.

    ## Bad
    ```python
    import torch
    import torch.nn.functional as F

    class Encode(torch.nn.Module):
        def forward(self, labels: torch.Tensor):
            return F.one_hot(labels)
    ```

    ## Good
    ```python
    import torch
    import torch.nn.functional as F

    class Encode(torch.nn.Module):
        def forward(self, labels: torch.Tensor):
            return F.one_hot(labels, num_classes=10)
    ```

    ## Fix safety
    No fix: the number of classes comes from the model's settings.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line; a trace shows `aten::max` and
    `aten::_local_scalar_dense` below `aten::one_hot`.

    ## References
    - [torch.nn.functional.one_hot](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.one_hot.html)
    """

    code, name = "TPF115", "one-hot-no-classes"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("one-hot-no-classes-gpt", "one-hot-no-classes-gpt-host-work", "one-hot-no-classes-policy")
    listens = (Calls(*ONE_HOT),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if (confidence := data_sized(site)) is not None:
            yield self.finding(
                site,
                f"{shown(site)} reads the greatest label from the GPU: the CPU waits{often(site)}",
                confidence=confidence,
                help="Pass `num_classes=`.",
            )
