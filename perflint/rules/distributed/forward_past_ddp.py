"""TPF927: a training forward pass that goes past the wrapper of DDP."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Severity
from perflint.rules._memory.flows import made
from perflint.rules._names import DDP
from perflint.rules._results import result_of
from perflint.rules._turns import places
from perflint.rules.base import Calls, CallSite, Mentions, Rule, shown
from perflint.semantics.heat.training import goes_backward
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in, last_name, names_in, path_of, walk

_OFF = frozenset({"no_grad", "inference_mode", "set_grad_enabled"})


class ForwardPastDdp(Rule):
    """A training step calls the module inside of `DistributedDataParallel`.

    ## What it does
    Finds `ddp.module(x)` in functions that also call `backward()`, or give the loss from which their only caller goes
    backward, where `ddp` is the result of `DistributedDataParallel(…)`.

    ## Why is this bad
    The wrapper prepares the reduction of the gradients in its own forward pass. A forward pass of `ddp.module` does not
    prepare it, so that the gradients of the processes are not averaged: each process trains a model of its own, on
    its part of the data. Nothing fails and nothing warns. It is a warning because results are wrong, not because of
    what it costs.

    ## When it is fine
    - Evaluation and sampling: the wrapper is not needed there. Calls under `torch.no_grad()`, and functions without
      `backward()`, are not reported.
    - The wrapper runs in the same backward pass, too, which prepares the reduction for both.
    - The gradients are reduced by hand.

    ## Bad
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def train(model: torch.nn.Module, loader, optimizer, rank: int):
        ddp = DistributedDataParallel(model.cuda(rank), device_ids=[rank])
        for x in loader:
            ddp.module(x.cuda(rank)).mean().backward()
            optimizer.step()
    ```

    ## Good
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def train(model: torch.nn.Module, loader, optimizer, rank: int):
        ddp = DistributedDataParallel(model.cuda(rank), device_ids=[rank])
        for x in loader:
            ddp(x.cuda(rank)).mean().backward()
            optimizer.step()
    ```

    ## Fix safety
    No fix: the results of the training change.

    ## How a GPU shows it
    A profile shows no `ncclDevKernel_AllReduce` in the backward pass, and the parameters of two processes differ after
    a step.

    ## References
    - [DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    - [Distributed data parallel: internal design](https://docs.pytorch.org/docs/stable/notes/ddp.html)
    """

    code, name = "TPF927", "forward-past-ddp"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Calls("torch.nn.Module.__call__"),)
    mentions = Mentions("DistributedDataParallel", also=("backward(",), without=("all_reduce", "reduce_gradients"))

    def check(self, site: CallSite) -> Iterator[Finding]:
        called = made(site.model, site.node.func)
        if not isinstance(called, ast.Attribute) or called.attr != "module" or not _needs_wrapper(site, called):
            return
        if result_of(site.model, called.value, *DDP) is None:
            return
        yield self.finding(
            site,
            f"{shown(site)} goes past `DistributedDataParallel`, which then reduces no gradients",
            help=f"Call the wrapper: `{site.text(called.value)}(…)`.",
        )


def _needs_wrapper(site: CallSite, module: ast.Attribute) -> bool:
    """True if the function around a call goes backward, without a call of the wrapper, and autograd is on."""
    model, node = site.model, site.node
    function, inner = model.function(node), path_of(module)
    if function is None or not (goes_backward(model, function) or _is_returned_to_backward(model, node)):
        return False
    if any(f"{path_of(each.func)}.module" == inner for each in calls_in(function)):
        return False
    around = (outer for outer in model.ancestors(node) if isinstance(outer, ast.With))
    contexts = (item.context_expr for outer in around for item in outer.items)
    return not any(isinstance(each, ast.Call) and last_name(each) in _OFF for each in contexts)


def _is_returned_to_backward(model: Model, node: ast.AST) -> bool:
    """True if the only call of the function around a node gives a loss, from which the caller goes backward."""
    call = next(itertools.islice(places(model, node), 1, None), None)
    statement = None if call is None else model.parent(call)
    if call is None or not isinstance(statement, ast.Assign):
        return False
    names = {name for target in statement.targets for name in names_in(target)}
    around = (each for each in walk(model.function(call) or statement) if isinstance(each, ast.Call))
    return any(last_name(each) == "backward" and names & names_in(each) for each in around)
