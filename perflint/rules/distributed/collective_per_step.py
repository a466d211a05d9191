"""TPF923: several small collectives in each step instead of one."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._bindings import derived
from perflint.rules._memory.flows import made
from perflint.rules._statements import block_of
from perflint.rules._turns import calls_of
from perflint.rules.base import Calls, CallSite, Rule, shown
from perflint.semantics.around import loops_around, statement_of
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in, names_in

_REDUCES = ("torch.distributed.all_reduce", "torch.distributed.reduce")


class CollectivePerStep(Rule):
    """One collective for each number, in code that runs each step.

    ## What it does
    Finds two or more `all_reduce` calls in one block of code that runs each step, if each reduces
    one number, one in a loop over numbers that are written out, or over entries of a dict or list in each step, and one
    in a function that such a block calls several times.

    ## Why is this bad
    Each collective launches a kernel on every device and waits for the slowest of them; for one
    number, that latency is the whole cost. Packed into one tensor, all of them cost as much as one.
    Numbers that are only logged can be reduced every 100 steps. Three of them in each training step of GPT-2 made
    no difference on two H200s of one host; between hosts each costs a round trip.

    ## When it is fine
    - Under an interval, or once per epoch.
    - Large tensors, for example gradients: not reported.
    - Different operations or groups: sums and maxima cannot share a tensor.

    ## Bad
    ```python
    import torch
    import torch.distributed as dist

    def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            mean, least = loss.detach(), loss.detach() * 2
            dist.all_reduce(mean)
            dist.all_reduce(least)
    ```

    ## Good
    ```python
    import torch
    import torch.distributed as dist

    def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            both = torch.stack([loss.detach(), loss.detach() * 2])
            dist.all_reduce(both)
    ```

    ## Fix safety
    No fix: the tensors have to be packed, and taken apart again.

    ## How a GPU shows it
    A trace counts the collectives of each line by the size of what they send. Single numbers confirm the finding,
    larger tensors refute it. In a group of one process it costs nothing.

    A profile shows a series of short NCCL kernels between two steps.

    ## References
    - [torch.distributed.all_reduce](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_reduce)
    """

    code, name = "TPF923", "collective-per-step"
    effect, severity = Effect.PIPELINE, Severity.INFO
    measured = ("collective-per-step",)
    listens = (Calls(*_REDUCES),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if site.heat is not Heat.HOT:
            return
        is_number = _is_number(site)
        others = _others(site) if is_number else []
        if others and others[0].lineno < site.node.lineno:
            # One finding for all of them, at the first.
            return
        call = shown(site)
        if others:
            said = f"{call} and {len(others)} more in this block reduce one number each"
        elif is_number and _loop_over_numbers(site) is not None:
            said = f"{call} reduces one number in each iteration of this loop"
        elif (calls := _most_calls(site)) > 1:
            said = f"{call} reduces one number for each of {calls} calls in a block"
        else:
            return
        yield self.finding(
            site,
            f"{said} (runs every step)",
            confidence=Confidence.MEDIUM,
            help="Stack the numbers and reduce them at once.",
        )


def _is_number(site: CallSite) -> bool:
    given = site.argument("tensor", 0)
    return given is not None and _has_rank_0(site.model, given)


def _has_rank_0(model: Model, node: ast.expr) -> bool:
    tensor = model.value(node).tensor
    return tensor is not None and tensor.rank == 0


def _loop_over_numbers(site: CallSite) -> ast.For | None:
    """The loop over several numbers around a call, which gets one of them.

    The numbers are written out, `for x in (loss, accuracy)`, or the whole loop runs each step: `metrics.items()`.
    """
    given, loop = site.argument("tensor", 0), next(loops_around(site.model, site.node), None)
    if not isinstance(given, ast.Name) or not isinstance(loop, ast.For):
        return None
    if given.id not in derived(loop, names_in(loop.target)):
        return None
    over = made(site.model, loop.iter)
    if isinstance(over, (ast.Tuple, ast.List)):
        return loop if len(over.elts) > 1 else None
    return loop if site.model.heat(loop) is Heat.HOT else None


def _others(site: CallSite) -> list[ast.Call]:
    """The other calls of the same function, operation and group in the block, that reduce a number."""
    model = site.model
    statement = statement_of(model, site.node)
    if statement is None:
        return []
    block = [each for each in block_of(model, statement) if isinstance(each, (ast.Expr, ast.Assign))]
    calls = [part for part in calls_in(*block) if part is not site.node]
    return [call for call in calls if _is_alike(model, site, call)]


def _most_calls(site: CallSite) -> int:
    """How often one block of code that runs each step calls the function around a site for a number."""
    model = site.model
    blocks: Counter[ast.stmt] = Counter()
    for call in calls_of(model, model.function(site.node)):
        statement = statement_of(model, call)
        if (
            statement is not None
            and model.heat(call) is Heat.HOT
            and any(_has_rank_0(model, each) for each in call.args)
        ):
            blocks[block_of(model, statement)[0]] += 1
    return max(blocks.values(), default=0)


def _is_alike(model: Model, site: CallSite, call: ast.Call) -> bool:
    other = model.call(call)
    if other.target != site.target or not _is_number(other):
        return False
    return _rest(site.node) == _rest(call)


def _rest(call: ast.Call) -> list[str]:
    return [ast.dump(each) for each in [*call.args[1:], *call.keywords] if getattr(each, "arg", "") != "tensor"]
