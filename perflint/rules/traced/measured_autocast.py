"""TPF994: an experiment of a trace found the model faster under autocast."""

from __future__ import annotations

from perflint.findings import Effect, Severity
from perflint.rules.base import TracedRule


class MeasuredAutocast(TracedRule):
    """A model in float32 that was faster under autocast to bfloat16.

    ## What it does
    Reports the call of a model in a training step if `perflint trace --experiments` found a copy of the model
    faster under bfloat16 autocast, beyond the spread of the repeats. It needs `--trace FILE
    --experiments`; otherwise it reports nothing.

    ## Why is this bad
    Tensor cores multiply bfloat16 several times as fast as float32, and activations take half the memory.
    It is a warning because an experiment measured the gain with the model of this program.

    ## When it is fine
    Results need the precision of float32. Files that mention autocast, a gradient scaler or a
    16-bit format choose formats themselves and are not changed. Nothing is written either if the call and the loss
    are not assignments of one block, if the file uses `BCELoss`, which autocast rejects, or
    `.numpy()`, which does not know bfloat16.

    ## Bad
    ```python
    import torch
    import torch.nn.functional as F

    def step(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor):
        scores = model(x)
        loss = F.cross_entropy(scores, y)
        loss.backward()
    ```

    ## Good
    ```python
    import torch
    import torch.nn.functional as F

    def step(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            scores = model(x)
            loss = F.cross_entropy(scores, y)
        loss.backward()
    ```

    ## Fix safety
    Risky: products and activations are rounded to 8 bits, so training may end elsewhere. Outputs of the
    model are bfloat16 afterwards. `perflint verify --experiments --risky-fixes` compares the losses.

    ## How a GPU shows it
    `perflint trace --experiments` copies the model, calls it with the arguments of a recorded step,
    and times forward and backward before and after in turn. The trace also has the place of the call.

    ## References
    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
    """

    code, name = "TPF994", "measured-autocast"
    effect, severity = Effect.COMPUTE, Severity.WARNING
