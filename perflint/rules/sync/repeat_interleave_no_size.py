"""TPF114: repeat_interleave by a tensor, without the size of its result."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Effect, Finding, Severity
from perflint.rules.base import Calls, CallSite, Rule, often, shown
from perflint.rules.sync._data_sized import REPEATS, data_sized


class RepeatInterleaveNoSize(Rule):
    """
    ## What it does
    Finds `repeat_interleave` with a GPU tensor of repeats and without `output_size`.

    ## Why is this bad
    The size of the result is the sum of the repeats, so the CPU waits for the GPU to add them up.

    ## When it is fine
    A Python number of repeats. A size that the CPU cannot know.

    ## Bad
    ```python
    import torch

    class Expand(torch.nn.Module):
        def forward(self, x, repeats: torch.Tensor):
            return x.repeat_interleave(repeats, dim=0)
    ```

    ## Good
    ```python
    import torch

    class Expand(torch.nn.Module):
        def forward(self, x, repeats: torch.Tensor, total: int):
            return x.repeat_interleave(repeats, dim=0, output_size=total)
    ```

    ## Fix safety
    No fix: a wrong `output_size` gives wrong results.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line; a trace shows
    `aten::repeat_interleave` with a `Memcpy DtoH` and a `cudaStreamSynchronize`.

    ## References
    - [torch.repeat_interleave](https://docs.pytorch.org/docs/stable/generated/torch.repeat_interleave.html):
      output_size "will avoid stream synchronization"
    """

    code, name = "TPF114", "repeat-interleave-no-size"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = (
        "repeat-interleave-no-size-gpt",
        "repeat-interleave-no-size-gpt-host-work",
        "repeat-interleave-no-size-policy",
    )
    listens = (Calls(*REPEATS),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if (confidence := data_sized(site)) is not None:
            yield self.finding(
                site,
                f"{shown(site)} has as many elements as the sum of the repeats: the CPU waits for it{often(site)}",
                confidence=confidence,
                help="Pass `output_size=` if the CPU knows the sum.",
            )
