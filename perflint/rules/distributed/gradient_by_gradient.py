"""TPF928: gradients that are reduced one parameter after the other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Severity
from perflint.rules._memory.flows import made
from perflint.rules._sources import sources
from perflint.rules._turns import heads, places
from perflint.rules.base import Calls, CallSite, Rule, often, shown
from perflint.semantics.around import Loop, inside, loops_around
from perflint.semantics.binders import COMPREHENSIONS, LOOPS
from perflint.semantics.model import Model
from perflint.semantics.purpose.given import arguments_given
from perflint.semantics.structure import is_none, names_in, tested, walk

_SAME = frozenset({"data", "detach", "contiguous"})


class GradientByGradient(Rule):
    """A loop reduces the gradient of each parameter by a collective of its own.

    ## What it does
    Finds `all_reduce(p.grad)` in a loop over parameters, and `all_reduce(g)` in a loop over a list of `p.grad`.

    ## Why is this bad
    Each of some hundred collectives launches a kernel on every device and waits for the slowest of them, and all
    begin after the backward pass. `DistributedDataParallel` packs gradients into buckets of 25 MB and reduces each
    while the backward pass goes on. On two H200s of one host, a training step of GPT-2 took 21% longer in the
    median of five runs, but less time in one of them. Between hosts each collective costs a round trip.

    ## When it is fine
    - Once after training, or for some parameters that are not replicated: code that tests the parameter is not
      reported.
    - A handful of large tensors.
    - The gradients were packed before: not reported.

    ## Bad
    ```python
    import torch
    import torch.distributed as dist

    def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
        for x, y in loader:
            torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()
            optimizer.step()
    ```

    ## Good
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer, rank: int):
        model = DistributedDataParallel(model, device_ids=[rank])
        for x, y in loader:
            torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
    ```

    ## Fix safety
    No fix: the wrapper belongs to where the model is made, and changes the names in checkpoints.

    ## How a GPU shows it
    A profile shows a series of NCCL kernels between the backward pass and the optimizer, with no other work beside
    them.

    ## References
    - [Distributed data parallel: internal design](https://docs.pytorch.org/docs/stable/notes/ddp.html)
    - [torch.distributed.all_reduce](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_reduce)
    """

    code, name = "TPF928", "gradient-by-gradient"
    effect, severity = Effect.PIPELINE, Severity.INFO
    measured = ("gradient-by-gradient",)
    listens = (Calls("torch.distributed.all_reduce", "torch.distributed.reduce"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        given = site.argument("tensor", 0)
        loop = None if given is None else _loop_of(site.model, given, site.node)
        if loop is None:
            return
        yield self.finding(
            site,
            f"{shown(site)} reduces the gradient of one parameter in each iteration{often(site)}",
            help="Wrap the model in `DistributedDataParallel`, or reduce all gradients as one flat tensor.",
        )


def _loop_of(model: Model, given: ast.expr, call: ast.Call) -> Loop | None:
    """The loop that reduces a gradient of each of its parameters, here or in a function that it calls."""
    holder, is_gradient = _holder(model, given)
    for place in places(model, call):
        if _chooses(model, place):
            return None
        for loop in loops_around(model, place):
            for target, source in heads(model, loop):
                if isinstance(holder, ast.Name) and holder.id in names_in(target):
                    return loop if is_gradient or _are_gradients(model, source) else None
        passed = arguments_given(model, holder)
        if passed:
            holder, is_one = _holder(model, passed[0])
            is_gradient = is_gradient or is_one
    return None


def _holder(model: Model, node: ast.expr) -> tuple[ast.expr, bool]:
    """The parameter whose gradient an expression is, and True; the expression itself for others."""
    seen: set[ast.expr] = set()
    while True:
        node = made(model, node)
        if node in seen:
            return node, False
        seen.add(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
            node = node.func.value
        elif isinstance(node, ast.Attribute) and node.attr in _SAME:
            node = node.value
        elif isinstance(node, ast.Attribute) and node.attr == "grad":
            return node.value, True
        else:
            return node, False


def _are_gradients(model: Model, source: ast.expr) -> bool:
    """True for `[p.grad for p in parameters]`."""
    parts = [part for part in walk(source) if isinstance(part, (ast.Name, ast.ListComp, ast.GeneratorExp))]
    found = [each for part in parts for each in sources(model, part)]
    return any(isinstance(each, (ast.ListComp, ast.GeneratorExp)) and _holder(model, each.elt)[1] for each in found)


def _chooses(model: Model, place: ast.AST) -> bool:
    """True if a test in the innermost loop, or in the function, asks for more than whether there is a gradient."""
    tests: list[ast.expr] = []
    for outer in inside(model, place):
        if isinstance(outer, (*LOOPS, *COMPREHENSIONS)):
            break
        if isinstance(outer, (ast.If, ast.IfExp)):
            tests += tested(outer.test)
    return not all(_asks_for_gradient(model, each) for each in tests)


def _asks_for_gradient(model: Model, test: ast.expr) -> bool:
    """True for `p.requires_grad` and `p.grad is not None`."""
    test = made(model, test)
    if isinstance(test, ast.Compare) and is_none(test.comparators[0]):
        test = test.left
    return isinstance(test, ast.Attribute) and test.attr in ("grad", "requires_grad")
