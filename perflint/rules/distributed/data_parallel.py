"""TPF921: DataParallel, which copies the model in each forward pass."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules._methods import in_tests
from perflint.rules._names import LIGHTNING
from perflint.rules._operators import operators
from perflint.rules.base import Calls, CallSite, Rule, shown
from perflint.semantics.values import Const

_WRAPPERS = operators("distributed", "data_parallel")


class DataParallel(Rule):
    """`nn.DataParallel`, which copies the model to all devices in each forward pass.

    ## What it does
    Finds models that are wrapped in `torch.nn.DataParallel`, also if a flag decides about it, and
    Lightning's `Trainer(strategy="dp")`.

    ## Why is this bad
    One process with one thread for each device runs all of them: in each forward pass it copies the whole model to
    every device and scatters the batch, and gathers outputs and gradients on the first one, while all threads share
    one interpreter lock. `DistributedDataParallel` runs one process for each device, keeps the copies, and reduces
    gradients while the backward pass runs. The documentation recommends it even on one machine. The cost depends on
    the model and the number of devices: a training step of GPT-2 on two H200s takes 5.1 × as long (160 ms, not 32).

    ## When it is fine
    - One device: the wrapper then only calls the model.
    - Code that cannot be started in several processes, for example a notebook.

    ## Bad
    ```python
    import torch
    from torch import nn

    def wrap(model: nn.Module):
        return nn.DataParallel(model).cuda()
    ```

    ## Good
    ```python
    import torch
    from torch import nn

    def wrap(model: nn.Module, local_rank: int):
        torch.distributed.init_process_group("nccl")
        return nn.parallel.DistributedDataParallel(model.cuda(local_rank), device_ids=[local_rank])
    ```

    ## Fix safety
    No fix: the program has to be started once for each device, with a sampler that distributes the
    data.

    ## How a GPU shows it
    A trace confirms the finding if the model was copied to several GPUs for a call, and refutes it if the wrapper
    had one device or none.

    A profile shows `Broadcast` and `Scatter` before and `Gather` after each forward pass, and little work
    on all devices but the first meanwhile.

    ## References
    - [torch.nn.DataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html)
    - [Use nn.parallel.DistributedDataParallel instead of multiprocessing or
      nn.DataParallel](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-nn-ddp-instead)
    """

    code, name = "TPF921", "data-parallel"
    effect, severity = Effect.TRANSFER, Severity.ERROR
    measured = ("data-parallel",)
    costs = "on two GPUs, a training step of GPT-2 is {0} slower than with DistributedDataParallel"
    listens = (Calls(*_WRAPPERS, *LIGHTNING),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if not (site.node.args or site.node.keywords) or in_tests(site.model):
            return
        if site.target in LIGHTNING and not _is_data_parallel(site):
            return
        yield self.finding(
            site,
            f"{shown(site)} copies the model to all GPUs in each forward pass, and collects all outputs on one",
            # It is wrapped once, and paid for in each step.
            heat=Heat.HOT,
            help="Use `DistributedDataParallel` with one process for each GPU.",
        )


def _is_data_parallel(site: CallSite) -> bool:
    """True if a trainer wraps its model in `DataParallel`."""
    given = site.argument("strategy")
    return given is not None and site.value(given) == Const("dp")
