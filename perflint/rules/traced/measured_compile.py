"""TPF991: an experiment of a trace found the compiled model faster."""

from __future__ import annotations

from perflint.findings import Effect, Severity
from perflint.rules.base import TracedRule


class MeasuredCompile(TracedRule):
    """A model that was faster when compiled.

    ## What it does
    Reports the place that makes a model if `perflint trace --experiments` found a copy of the model
    faster with `torch.compile`, beyond the spread of the repeats. Of the default mode and
    `reduce-overhead`, which uses CUDA graphs, the faster one is proposed. A replay of a CUDA graph overwrites the
    outputs of the call before. So `reduce-overhead` is proposed only if the file that calls the model keeps no output
    until the next step. If each recorded step called the model once and no other model was tried with graphs,
    nothing more is needed. Otherwise the fix also writes `torch.compiler.cudagraph_mark_step_begin()` at the start
    of the step, so that all outputs live until the next one. It needs a proof for that: all calls of
    the models, the backward passes and the steps of their optimizers lie in the body of one loop or function,
    and each optimizer sets its gradients to None in the step. If gradients of the step before would
    still be added to, as those of a GAN's discriminator are, the fix drops them at the start, too.
    Otherwise the default mode is proposed if it was faster, and the command says why.
    It needs `--trace FILE --experiments`; otherwise it reports nothing.

    ## Why is this bad
    In a small model the GPU waits for the CPU to launch kernels. Compiled code launches fewer of
    them, and a CUDA graph launches all of them at once.
    It is a warning because an experiment measured the gain with the model of this program.

    ## When it is fine
    Runs of a few minutes, because the first steps compile. Models that are called with many
    different shapes: the experiment timed one shape, and nothing is reported if the recorded steps
    had several. A model that the file compiles already, one that `DataParallel`,
    `DistributedDataParallel` or `FullyShardedDataParallel` wraps, one that is given to
    TorchScript, and one that is made inside a larger expression get no fix; the command says why.

    ## Bad
    ```python
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(64, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x).relu()

    model = Net().cuda()
    ```

    ## Good
    ```python
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(64, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x).relu()

    model = Net().cuda()
    model.compile(mode="reduce-overhead")
    ```

    ## Fix safety
    Results differ in the last bits, and random numbers such as those of dropout are others. The first
    calls take seconds to minutes. Code that cannot be compiled runs eagerly in between, or raises. With
    `reduce-overhead` an output that is kept until a later step is overwritten or raises; clone it. A fix
    that marks the beginning of a step is risky: the calls between two marks keep their memory, and each of them
    records a graph of its own. The in-place form keeps the keys of checkpoints. A model of a class of torch, such as
    `nn.Sequential`, cannot be compiled in place: there the fix binds the result of `torch.compile`, which adds the
    prefix `_orig_mod.` to the keys, so it is risky. `perflint verify --experiments` runs the program
    with and without the fix.

    ## How a GPU shows it
    `perflint trace --experiments` copies the model, calls it with the arguments of a recorded step,
    and times forward and backward before and after in turn.

    ## References
    - [torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
    - [torch.nn.Module.compile](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.compile)
    """

    code, name = "TPF991", "measured-compile"
    effect, severity = Effect.COMPUTE, Severity.WARNING
