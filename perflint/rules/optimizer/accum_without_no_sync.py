"""TPF604: gradients that all processes reduce at each micro-step of an accumulation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._methods import calls_named
from perflint.rules._places import loops_around
from perflint.rules.base import Files, Rule
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite, FileSite
from perflint.semantics.structure import walk
from perflint.source.quoting import quoted

_WRAPPERS = frozenset(
    {
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.parallel.distributed.DistributedDataParallel",
    }
)
_AVOIDS = ("no_sync", "require_backward_grad_sync", "set_requires_gradient_sync", "sync_gradients", ".accumulate(")


class AccumWithoutNoSync(Rule):
    """Gradient accumulation under DistributedDataParallel that reduces gradients at every micro-step.

    ## What it does
    Finds loops that call `backward()` on each iteration, step the optimizer only every few
    iterations (`if (i + 1) % accumulate == 0`), and are in a file that wraps its model with
    `DistributedDataParallel` and never uses `no_sync`.

    ## Why is this bad
    Each backward pass of a wrapped model reduces all gradients over all processes. Only the last
    reduction before the optimizer's step is needed: with an accumulation over four micro-steps,
    three of four reductions are wasted. The cost depends on the network between the devices; it has
    not been measured here.

    ## When it is fine
    - The model is wrapped in some runs only, and those do not accumulate.
    - A framework that accumulates by itself: accelerate, Lightning, DeepSpeed.
    - FSDP: `no_sync` there keeps full gradients, which may not fit.

    ## Bad
    ```python
    from torch.nn.parallel import DistributedDataParallel

    def train(model, loader, optimizer, accumulate: int):
        model = DistributedDataParallel(model)
        for i, x in enumerate(loader):
            model(x).sum().backward()
            if (i + 1) % accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Good
    ```python
    from contextlib import nullcontext

    from torch.nn.parallel import DistributedDataParallel

    def train(model, loader, optimizer, accumulate: int):
        model = DistributedDataParallel(model)
        for i, x in enumerate(loader):
            steps = (i + 1) % accumulate == 0
            with nullcontext() if steps else model.no_sync():
                model(x).sum().backward()
            if steps:
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Fix safety
    No fix: the forward pass has to be inside `no_sync` as well, and the last micro-step outside.

    ## How a GPU shows it
    A trace confirms the finding if a backward pass reduced the gradients again before the optimizer's step. It is
    refuted if a step followed each reduction, or if all passes ran under `no_sync`.

    A profile shows as many NCCL all-reduce kernels for each micro-step as for a step of the optimizer.

    ## References
    - [DistributedDataParallel.no_sync](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    - [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code, name = "TPF604", "accum-without-no-sync"
    effect, severity = Effect.PIPELINE, Severity.INFO
    listens = (Files("DistributedDataParallel", also=("backward",), without=_AVOIDS),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        names = model.symbols
        if not any(names.full_name(call.func) in _WRAPPERS for call in model.nodes(ast.Call)):
            return
        seen: set[ast.expr] = set()
        for call in calls_named(site, "backward"):
            boundary = _boundary(model, call)
            # One of several in branches speaks for all.
            if boundary is None or boundary in seen:
                continue
            seen.add(boundary)
            yield self.finding(
                call,
                f"{quoted(call.text(call.node))} reduces the gradients over all processes in each iteration, but the "
                f"optimizer steps only if {quoted(site.text(boundary))}",
                confidence=Confidence.MEDIUM,
                help="Run all micro-steps but the last one under `model.no_sync()`.",
            )


def _boundary(model: Model, site: CallSite) -> ast.expr | None:
    """The test under which the optimizer steps, in the loop around a backward pass that runs in each iteration."""
    loop = next(loops_around(model, site.node), None)
    if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        return None
    for branch in walk(loop):
        if not isinstance(branch, ast.If) or not _is_interval(branch.test) or site.node in walk(branch):
            continue
        if any(isinstance(part, ast.Call) and _steps(model, part) for each in branch.body for part in walk(each)):
            return branch.test
    return None


def _is_interval(test: ast.expr) -> bool:
    """`(i + 1) % k == 0`, also as one part of an `or`."""
    return any(
        isinstance(part, ast.Compare)
        and isinstance(part.left, ast.BinOp)
        and isinstance(part.left.op, ast.Mod)
        and isinstance(part.ops[0], ast.Eq)
        for part in walk(test)
    )


def _steps(model: Model, call: ast.Call) -> bool:
    """True if a call steps an optimizer: `optimizer.step()`, `scaler.step(optimizer)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return False
    target = model.target(call)
    if target:
        return target in ("torch.optim.Optimizer.step", "torch.amp.GradScaler.step", "torch.cuda.amp.GradScaler.step")
    said = model.source.written(call).lower()
    return "optim" in said or "scaler" in said
