"""TPF924: barriers and collectives of Python objects in each step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._operators import operators
from perflint.rules.base import Calls, CallSite, Rule, shown
from perflint.semantics.around import inside

_BARRIERS = tuple(f"torch.distributed.{name}" for name in ("barrier", "monitored_barrier"))
_OBJECTS = operators("waits", "objects")


class BarrierInLoop(Rule):
    """A barrier, or a collective of Python objects, in code that runs each step.

    ## What it does
    Finds `torch.distributed.barrier()` and `all_gather_object`, `gather_object`, `broadcast_object_list`
    and `scatter_object_list` in code that runs each step.

    ## Why is this bad
    A barrier makes every process wait, on the CPU, until all devices have done all of their work:
    nothing is queued meanwhile. Collectives of objects pickle them, copy the bytes to the GPU, ask
    with `.item()` for the length of the others' bytes, and copy them back: several waits for each
    call. Torch's sync debug mode does not see barriers. It costs at least as much as
    `torch.cuda.synchronize()` at the same place, and as long as the slowest process takes.

    ## When it is fine
    - Set-up, checkpoints, the end of an epoch.
    - Around a time measurement.
    - Under `if key not in cache:`, which runs once for each key, before an error is raised, and in
      functions that load or save: not reported.
    - Results of an evaluation that are strings, gathered once after the loop.

    ## Bad
    ```python
    import torch
    import torch.distributed as dist

    def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
        for x in loader:
            model(x.cuda()).sum().backward()
            optimizer.step()
            dist.barrier()
    ```

    ## Good
    ```python
    import torch
    import torch.distributed as dist

    def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
        for x in loader:
            model(x.cuda()).sum().backward()
            optimizer.step()
        dist.barrier()
    ```

    ## Fix safety
    No fix: the source does not show why the call is there.

    ## How a GPU shows it
    A trace counts the barriers and the collectives of objects at the line. In a group of one process they cost nothing.

    A profile shows `cudaStreamSynchronize` or `cudaDeviceSynchronize` below the line in each
    process, and idle devices until the last process arrives.

    ## References
    - [torch.distributed.barrier](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.barrier)
    - [torch.distributed.all_gather_object](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_gather_object)
    """

    code, name = "TPF924", "barrier-in-loop"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("explicit-synchronize-gpt", "explicit-synchronize-gpt-host-work", "explicit-synchronize-policy")
    listens = (Calls(*_BARRIERS, *_OBJECTS),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if site.heat is not Heat.HOT or _is_once(site):
            return
        barrier = site.target in _BARRIERS
        does = "makes all processes wait for all devices" if barrier else "pickles objects and waits several times"
        yield self.finding(
            site,
            f"{shown(site)} {does} (runs every step)",
            confidence=Confidence.MEDIUM,
            help="Remove it, unless the processes share files: collectives keep their order without it."
            if barrier
            else "Use tensors, or gather after the loop.",
        )


def _is_once(site: CallSite) -> bool:
    """True if a call stands where something is made that is kept, before the end, or in loading and saving."""
    function = site.model.function(site.node)
    if getattr(function, "name", "").lstrip("_").startswith(("load", "save")):
        return True
    branches = [outer for outer in inside(site.model, site.node) if isinstance(outer, ast.If)]
    if any(isinstance(branch.body[-1], ast.Raise) for branch in branches):
        return True
    tests = [branch.test for branch in branches]
    return any(isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn) for test in tests)
