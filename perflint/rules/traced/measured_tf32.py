"""TPF992: an experiment of a trace found the model faster in TF32."""

from __future__ import annotations

from perflint.findings import Effect, Severity
from perflint.rules.base import TracedRule


class MeasuredTf32(TracedRule):
    """A model in float32 that was faster in TF32.

    ## What it does
    Reports the place that makes a model if `perflint trace --experiments` found a copy of it faster
    with TF32, beyond the spread of the repeats. It needs `--trace FILE --experiments`; otherwise it
    reports nothing.

    ## Why is this bad
    By default torch multiplies float32 matrices without tensor cores. TF32 uses them: it keeps the range
    of float32 and rounds the factors to 10 bits.
    It is a warning because an experiment measured the gain with the model of this program.

    ## When it is fine
    Results need the precision of float32: scientific computing, ill-conditioned solvers, comparisons with a
    reference. A file that sets `allow_tf32` or `fp32_precision` itself gets no fix.

    ## Bad
    ```python
    import torch

    model = torch.nn.Linear(4096, 4096).cuda()
    ```

    ## Good
    ```python
    import torch

    torch.set_float32_matmul_precision("high")
    model = torch.nn.Linear(4096, 4096).cuda()
    ```

    ## Fix safety
    Risky: products of float32 matrices have an error of about 0.001 instead of 0.0000001, in the whole
    program, so training may end elsewhere. `perflint verify --experiments --risky-fixes` compares the losses.

    ## How a GPU shows it
    `perflint trace --experiments` copies the model, calls it with the arguments of a recorded step,
    and times forward and backward before and after in turn.

    ## References
    - [TensorFloat-32](https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices)
    - [torch.set_float32_matmul_precision](https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html)
    """

    code, name = "TPF992", "measured-tf32"
    effect, severity = Effect.COMPUTE, Severity.WARNING
