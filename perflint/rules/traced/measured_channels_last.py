"""TPF993: an experiment of a trace found the model faster in channels_last."""

from __future__ import annotations

from perflint.findings import Effect, Severity
from perflint.rules.base import TracedRule


class MeasuredChannelsLast(TracedRule):
    """A model of convolutions that was faster in channels_last.

    ## What it does
    Reports the place that makes a model if `perflint trace --experiments` found a copy of it faster
    in `channels_last`, beyond the spread of the repeats. It needs `--trace FILE --experiments`;
    otherwise it reports nothing.

    ## Why is this bad
    cuDNN's kernels for tensor cores read the channels of a pixel together. In the default layout they
    copy each tensor before and after a convolution.
    It is a warning because an experiment measured the gain with the model of this program.

    ## When it is fine
    The file mentions `channels_last` already. Models whose layers need the default layout: the
    experiment would have failed, and nothing is reported.

    ## Bad
    ```python
    import torch

    model = torch.nn.Conv2d(3, 64, 3).cuda()
    ```

    ## Good
    ```python
    import torch

    model = torch.nn.Conv2d(3, 64, 3).cuda()
    model = model.to(memory_format=torch.channels_last)
    ```

    ## Fix safety
    Unsafe: other kernels compute, so results differ in the last bits. `stride()` of outputs differs, and
    `.view()` of an activation may raise in code that the recorded steps did not run. The fix converts the
    weights; the first convolution converts the input, so the code of the loader stays as it is.

    ## How a GPU shows it
    `perflint trace --experiments` copies the model, calls it with the arguments of a recorded step,
    and times forward and backward before and after in turn.

    ## References
    - [Channels last memory format](https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html)
    """

    code, name = "TPF993", "measured-channels-last"
    effect, severity = Effect.COMPUTE, Severity.WARNING
