"""TPF963: checkpoints in each step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._turns import places, turn_around
from perflint.rules.base import Calls, CallSite, Rule, shown
from perflint.semantics.around import inside

_SAVES = ("torch.save", "safetensors.torch.save_file", "torch.distributed.checkpoint.save")


_BLOCKS = (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)


class CheckpointEachStep(Rule):
    """A model is saved in each step.

    ## What it does
    Finds `torch.save`, `safetensors.torch.save_file` and `torch.distributed.checkpoint.save` in loops that
    step an optimizer, without a condition.

    ## Why is this bad
    All parameters are copied to the CPU with blocking copies and written to the disk, while the GPU
    is idle. For most models that takes longer than the step. In training of a 124 M parameter GPT,
    saving into memory in each step made it 32 times slower on an H200; a disk comes on top.

    ## When it is fine
    - Under a condition: every so many steps, when the result is the best so far.
    - Saving results of an inference for each batch: writing is the purpose there, and it is not
      reported.
    - `torch.distributed.checkpoint.async_save` writes while the training continues.

    ## Bad
    ```python
    import torch

    def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
        for x in loader:
            model(x).sum().backward()
            optimizer.step()
            torch.save(model.state_dict(), "last.pt")
    ```

    ## Good
    ```python
    import torch

    def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
        for step, x in enumerate(loader):
            model(x).sum().backward()
            optimizer.step()
            if step % 1000 == 0:
                torch.save(model.state_dict(), "last.pt")
    ```

    ## Fix safety
    No fix: the source does not show how often a checkpoint is needed.

    ## How a GPU shows it
    A trace records the bytes and the time of `torch.save`, and refutes the finding if it ran in less
    than half of the steps. A profile shows one `Memcpy DtoH` for each parameter at the end of the step,
    and idle time while the file is written.

    ## References
    - [torch.save](https://docs.pytorch.org/docs/stable/generated/torch.save.html)
    - [Asynchronous saving with distributed
      checkpoint](https://docs.pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html)
    """

    code, name = "TPF963", "checkpoint-each-step"
    effect, severity = Effect.TRANSFER, Severity.ERROR
    measured = ("checkpoint-step-gpt",)
    replaces = ("TPF109",)
    costs = "saving all parameters in each step makes GPT-2 training {0} slower"
    listens = (Calls(*_SAVES),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if site.heat is not Heat.HOT or not _trains(site):
            return
        yield self.finding(
            site,
            f"{shown(site)} copies all parameters to the CPU and writes them (runs every step)",
            confidence=Confidence.MEDIUM,
            help="Save every 1000 steps.",
        )


def _trains(site: CallSite) -> bool:
    """True if the iteration that runs a call steps an optimizer each time, and the call depends on nothing else."""
    model, turn = site.model, turn_around(site.model, site.node)
    if not isinstance(turn, _BLOCKS):
        return False
    for outer in (outer for place in places(model, site.node) for outer in inside(model, place)):
        if outer is turn:
            break
        if isinstance(outer, (ast.If, ast.IfExp, ast.ExceptHandler)):
            return False
    # It steps in this very loop: in one inside of it, this is an epoch.
    work = model.heat_map.work.of(turn.body)
    return work.steps or work.backward
