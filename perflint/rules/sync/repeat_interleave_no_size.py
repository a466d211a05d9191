"""TPF114: repeat_interleave by a tensor, without the size of its result."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._words import often
from perflint.rules.base import Calls, Rule
from perflint.semantics.sites import CallSite, device_confidence
from perflint.semantics.structure import is_none
from perflint.semantics.values import Device, Evidence, Tensor
from perflint.source.quoting import quoted


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
    listens = (Calls("torch.repeat_interleave", "torch.Tensor.repeat_interleave"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        confidence = _confidence(site)
        if confidence is None:
            return
        yield self.finding(
            site,
            f"{quoted(site.text(site.node))} has as many elements as the sum of the repeats: the CPU waits for it"
            f"{often(site)}",
            confidence=confidence,
            help="Pass `output_size=` if the CPU knows the sum.",
        )


def _confidence(site: CallSite) -> Confidence | None:
    given = site.argument("output_size")
    if site.has_unpacking or (given is not None and not is_none(given)):
        return None
    position = 0 if site.target.startswith("torch.Tensor.") else 1
    repeats = site.argument("repeats", position)
    if repeats is None and position == 1:
        # With one tensor, that is the repeats.
        repeats = site.argument("input", 0)
    if repeats is None or _repeats_on_cpu(site, position):
        return None
    return device_confidence(site.value(repeats))


def _repeats_on_cpu(site: CallSite, position: int) -> bool:
    """True if the tensor that is repeated is on the CPU: the call raises if the repeats are not there, too."""
    given = None if position == 0 else site.argument("input", 0)
    repeated = site.receiver if given is None else site.value(given)
    if not isinstance(repeated, Tensor):
        return False
    return repeated.device is Device.CPU and repeated.evidence is Evidence.CERTAIN
