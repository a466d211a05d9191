"""TPF604: gradients that all processes reduce at each micro-step of an accumulation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._memory.flows import behind, made
from perflint.rules._methods import calls_named
from perflint.rules._names import DDP
from perflint.rules._turns import Turn, nodes_of, places, turn_around
from perflint.rules.base import CallSite, Files, FileSite, Rule, shown
from perflint.semantics.around import inside
from perflint.semantics.binders import COMPREHENSIONS, LOOPS
from perflint.semantics.facts import conventions
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in, last_name, walk

_WRAPPERS = {
    **dict.fromkeys(DDP, False),
    "torch.distributed.fsdp.fully_shard": True,
    "torch.distributed._composable.fsdp.fully_shard": True,
    "accelerate.Accelerator": False,
    **dict.fromkeys(("lightning.fabric.Fabric", "lightning.Fabric", "lightning_fabric.Fabric"), False),
}
"""The functions that make a model reduce its gradients, and whether they shard it."""
_AVOIDS = re.compile(r"(?<![a-zA-Z])sync(?!hroni)|no_sync|require_backward_grad_sync|_gradient_sync|\.accumulate\(")
"""Code that decides when gradients are reduced, in a function that runs a backward pass."""
_AVOIDS_SHARDED = re.compile(r"_gradient_sync|set_is_last_backward|\.accumulate\(")
"""The same for `fully_shard`, whose models have no `no_sync`."""
_ACCUMULATES = frozenset({"gradient_accumulation_steps", "gradient_accumulation_plugin"})
"""Arguments by which an accelerator accumulates by itself."""
_SCALES = frozenset({"backward", "scale", "float"})


class AccumWithoutNoSync(Rule):
    """Gradient accumulation under DistributedDataParallel that reduces gradients at every micro-step.

    ## What it does
    Finds loops that call `backward()` on each iteration, and step the optimizer only every few iterations
    (`if (i + 1) % accumulate == 0`) or after the loop, in a file that wraps its model with
    `DistributedDataParallel`, `fully_shard` or an `Accelerator`, if the function does not mention `no_sync` or
    the like. Also `with model.no_sync():` around the backward pass alone.

    ## Why is this bad
    Each backward pass of a wrapped model reduces all gradients over all processes. Only the last reduction before
    the optimizer's step is needed: with an accumulation over four micro-steps, three of four reductions are wasted.
    The cost depends on the network between the devices: without the needless reductions, a user's training with
    four micro-steps over Ethernet became 1.63 times as fast. On two H200s of one host, which NVLink joins, four
    micro-steps of GPT-2 take 16% longer. `DistributedDataParallel` decides in the forward pass whether the backward
    pass reduces, so `no_sync` around `backward()` alone changes nothing.

    ## When it is fine
    - The model is wrapped in some runs only, and those do not accumulate.
    - A framework that accumulates by itself: Lightning, DeepSpeed, `accelerator.accumulate`.
    - FSDP: without the reduction, full gradients are kept, which may not fit.

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
    effect, severity = Effect.PIPELINE, Severity.WARNING
    measured = ("accumulation-without-no-sync",)
    costs = "on two GPUs of one host, four micro-steps of GPT-2 that all reduce are {0} slower"
    listens = (Files("DistributedDataParallel", "fully_shard", "Accelerator", "Fabric", also=("backward",)),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        names = model.symbols
        wrappers = {full for call in model.nodes(ast.Call) if (full := names.full_name(call.func)) in _WRAPPERS}
        if not wrappers:
            return
        shards = all(_WRAPPERS[each] for each in wrappers)
        seen: set[ast.AST] = set()
        for call in calls_named(site, "backward"):
            if not shards and (context := _around_backward_alone(model, call.node)) is not None:
                yield self._too_late(call, context)
            accumulation = _accumulation(model, call, _AVOIDS_SHARDED if shards else _AVOIDS)
            # One of several in branches speaks for all.
            if accumulation is None or accumulation[0] in seen:
                continue
            seen.add(accumulation[0])
            yield self.finding(
                call,
                f"{shown(call)} reduces the gradients over all processes in each iteration, but the "
                f"optimizer steps {accumulation[1]}",
                confidence=Confidence.MEDIUM,
                help="Call `model.set_requires_gradient_sync(False)` before all micro-steps but the last one, if the "
                "full gradients fit into memory."
                if shards
                else "Run all micro-steps but the last one under `model.no_sync()`.",
            )

    def _too_late(self, call: CallSite, context: ast.expr) -> Finding:
        return self.finding(
            call,
            f"{shown(call)} still reduces the gradients: the forward pass runs outside of {shown(call, context)}",
            confidence=Confidence.MEDIUM,
            span=call.model.source.span(context),
            help="Put the forward pass under `no_sync()`, too.",
        )


def _around_backward_alone(model: Model, backward: ast.Call) -> ast.expr | None:
    """The `no_sync()` of a block that runs a backward pass, and no forward pass before it."""
    block = next((outer for outer in inside(model, backward) if isinstance(outer, ast.With)), None)
    if block is None or not all(last_name(part) in _SCALES for part in calls_in(*block.body)):
        return None
    # `with nullcontext() if steps else model.no_sync():`
    contexts = calls_in(*(item.context_expr for item in block.items))
    return next((part for part in contexts if last_name(part) == "no_sync"), None)


def _accumulation(model: Model, site: CallSite, avoids: re.Pattern[str]) -> tuple[ast.AST, str] | None:
    """The test or loop that makes backward passes accumulate, and when the optimizer steps, in words."""
    turn = turn_around(model, site.node)
    if turn is None or isinstance(turn, COMPREHENSIONS):
        return None
    function = turn if isinstance(turn, ast.FunctionDef) else model.function(turn) or model.source.tree
    if _is_synced(model, function, avoids):
        return None
    boundary = _boundary(model, site, turn)
    if boundary is not None:
        return boundary, f"only if {shown(site, boundary)}"
    if any(isinstance(part, ast.Call) and _steps(model, part) for part in nodes_of(model, turn)):
        return None
    if not isinstance(turn, LOOPS) or _stops_at_once(turn, site.node):
        return None
    steps = [part for part in calls_in(function) if _steps(model, part)]
    if any(step.lineno > turn.lineno and model.function(step) is model.function(turn) for step in steps):
        return turn, "only after the loop"
    return None


def _stops_at_once(loop: ast.For | ast.AsyncFor | ast.While, backward: ast.Call) -> bool:
    """True if a statement behind a backward pass ends the loop."""
    ends = (part for part in walk(loop) if isinstance(part, (ast.Break, ast.Return)))
    return any(end.lineno > backward.lineno for end in ends)


def _is_synced(model: Model, function: ast.AST, avoids: re.Pattern[str]) -> bool:
    """True if a function mentions the reduction of gradients, or one of the file that it calls or that calls it."""
    if _mentions(model, function, avoids):
        return True
    names = {last_name(part) for part in walk(function) if isinstance(part, (ast.Name, ast.Attribute))}
    own = getattr(function, "name", "")
    near = (each for each in model.module.structure.functions.values() if each.name in names or own in each.calls)
    return any(_mentions(model, each.node, avoids) for each in near)


def _mentions(model: Model, node: ast.AST, avoids: re.Pattern[str]) -> bool:
    first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", None)
    if avoids.search("".join(model.source.lines[first - 1 : last])):
        return True
    passed = (part.arg for part in walk(node) if isinstance(part, ast.keyword))
    return avoids is _AVOIDS and any(each in _ACCUMULATES for each in passed)


def _boundary(model: Model, site: CallSite, turn: Turn) -> ast.expr | None:
    """The test under which the optimizer steps, in the iteration that runs a backward pass each time."""
    around = {outer for place in places(model, site.node) for outer in inside(model, place)}
    for branch in nodes_of(model, turn):
        if not isinstance(branch, ast.If) or branch in around:
            continue
        test = made(model, branch.test)
        if not _is_interval(model, test):
            continue
        if any(isinstance(part, ast.Call) and _steps(model, part) for each in branch.body for part in walk(each)):
            return test
    return None


def _is_interval(model: Model, test: ast.expr) -> bool:
    """`(i + 1) % k == 0`, also as one part of an `or`."""
    return any(
        isinstance(part, ast.Compare)
        and isinstance(left := behind(model, part.left), ast.BinOp)
        and isinstance(left.op, ast.Mod)
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
    is_named_so = conventions.is_optimizer_or_scaler(last_name(call.func.value)) is not None
    return is_named_so or "optim" in said or "scaler" in said
