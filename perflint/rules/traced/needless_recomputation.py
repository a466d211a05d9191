"""TPF194: activation checkpointing on a GPU that has room for the activations."""

from __future__ import annotations

from perflint.findings import Effect, Severity
from perflint.rules.base import TracedRule


class NeedlessRecomputation(TracedRule):
    """
    ## What it does
    Reports `torch.utils.checkpoint` in the recorded steps of a program that would have room for the
    activations on its GPU. It needs `perflint check --trace FILE` with a trace of a GPU; otherwise it reports
    nothing.

    ## Why is this bad
    Checkpointing computes the forward pass of each block twice: a step takes up to a third longer. It
    pays only if the memory is needed.

    ## When it is fine
    The memory is kept for larger batches, longer sequences or a smaller GPU. It is not reported if the
    peak of the allocated memory was half of the GPU or more, if the peak and the recomputed
    activations together would take more than 70% of it, or if the size of the activations is
    unknown because the checkpointed function calls no module.

    ## Bad
    ```python
    import torch
    from torch.utils.checkpoint import checkpoint

    def forward(blocks: torch.nn.ModuleList, x: torch.Tensor) -> torch.Tensor:
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False)  # 12 GB of 80 are in use
        return x
    ```

    ## Good
    ```python
    import torch

    def forward(blocks: torch.nn.ModuleList, x: torch.Tensor) -> torch.Tensor:
        for block in blocks:
            x = block(x)
        return x
    ```

    ## Fix safety
    No fix: other runs of the program may need the memory.

    ## How a GPU shows it
    `perflint trace` records the calls of `checkpoint`, the peak of the allocated memory and the size of
    the GPU. In the first recorded steps it also adds up the memory that modules allocate when they run again
    in the backward pass: the program without checkpointing holds that memory at once.

    ## References
    - [torch.utils.checkpoint](https://docs.pytorch.org/docs/stable/checkpoint.html)
    """

    code, name = "TPF194", "needless-recomputation"
    effect, severity = Effect.COMPUTE, Severity.INFO
