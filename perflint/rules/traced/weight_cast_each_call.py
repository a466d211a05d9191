"""TPF193: a float32 weight is cast to 16 bits again although it has not changed."""

from __future__ import annotations

from perflint.findings import Effect, Severity
from perflint.rules.base import TracedRule


class WeightCastEachCall(TracedRule):
    """
    ## What it does
    Reports `.to`, `.half`, `.bfloat16` and similar calls on a float32 parameter that cast it to 16 bits
    although it has not changed since the same call cast it before. It needs `perflint check --trace FILE`;
    without a trace it reports nothing.

    ## Why is this bad
    Each cast reads the weight in 32 bits, writes it in 16 bits, and the layer reads it again. In
    inference with small batches, reading weights takes most of the time: with the cast a layer
    moves four times the bytes that it needs.

    ## When it is fine
    Training that keeps weights in float32 and casts them once per step: the optimizer has changed
    them since. That is not reported. Casts in fewer than half of the recorded steps are not reported
    either, nor are casts that autocast does by itself.

    ## Bad
    ```python
    import torch

    class Scale(torch.nn.Module):
        def __init__(self, weight: torch.Tensor):
            super().__init__()
            self.weight = torch.nn.Parameter(weight, requires_grad=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.weight.to(torch.bfloat16)
    ```

    ## Good
    ```python
    import torch

    class Scale(torch.nn.Module):
        def __init__(self, weight: torch.Tensor):
            super().__init__()
            self.weight = torch.nn.Parameter(weight.to(torch.bfloat16), requires_grad=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.weight
    ```

    ## Fix safety
    No fix: if the weight is kept in 16 bits only, checkpoints have another dtype, and training loses the
    float32 copy that the optimizer updates.

    ## How a GPU shows it
    `perflint trace` notes the conversions of parameters, and how often the parameter had been written to.
    A step of an optimizer counts as a change. The same weight, unchanged, at the same call is reported;
    a weight that has changed is not.

    ## References
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    """

    code, name = "TPF193", "weight-cast-each-call"
    effect, severity = Effect.COMPUTE, Severity.INFO
