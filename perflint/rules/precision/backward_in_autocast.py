"""TPF360: a backward pass under autocast."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Severity
from perflint.rules._methods import calls_named, is_false
from perflint.rules._names import AUTOCAST_OF_MODULE
from perflint.rules._sources import sources
from perflint.rules.base import CallSite, Files, FileSite, Rule, often, shown
from perflint.semantics.around import inside
from perflint.semantics.model import Model

_AUTOCAST = (*AUTOCAST_OF_MODULE, "torch.cuda.amp.autocast_mode.autocast")


class BackwardInAutocast(Rule):
    """A backward pass runs under autocast.

    ## What it does
    Finds `loss.backward()` and `scaler.scale(loss).backward()` in the block of `torch.autocast(…)`, or in a function
    that it decorates.

    ## Why is this bad
    Autocast is for the forward pass and the loss. The backward pass of an operator uses the type that the operator
    had. Under autocast, backward code that is written in Python, and code in hooks, is cast a second time, and the
    optimizer may end up in the block as well. torch does not recommend it. Training of GPT-2 took no longer on an
    H200 than chance explains (1.5%): it counts only where backward code is written in Python.

    ## When it is fine
    - `torch.autograd.grad` for a penalty that is a part of the loss: not reported.
    - Regions with `enabled=False`.

    ## Bad
    ```python
    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        for x in loader:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model(x.cuda()).mean()
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## Good
    ```python
    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        for x in loader:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model(x.cuda()).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## Fix safety
    No fix: gradients may be rounded in another way.

    ## How a GPU shows it
    A profile of the backward pass shows more `aten::to` and `aten::copy_` than one outside of the block.

    ## References
    - [torch.autocast](https://docs.pytorch.org/docs/stable/amp.html#autocasting): "Backward passes under autocast are
      not recommended"
    """

    code, name = "TPF360", "backward-in-autocast"
    effect, severity = Effect.COMPUTE, Severity.INFO
    measured = ("backward-in-autocast-gpt",)
    listens = (Files("autocast", also=(".backward(",)),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        for call in calls_named(site, "backward"):
            region = _region(call.model, call.node)
            if region is None or not _is_pass(call):
                continue
            yield self.finding(
                call,
                f"{shown(call)} runs under the autocast of line {region.lineno}{often(call)}",
                help="End the block after the loss.",
            )


def _region(model: Model, node: ast.Call) -> ast.Call | None:
    """The innermost autocast around a node that is on, as a block or as a decorator."""
    for outer in inside(model, node):
        items = outer.items if isinstance(outer, (ast.With, ast.AsyncWith)) else []
        if regions := _regions(model, [item.context_expr for item in items]):
            return regions[-1] if _is_on(model, regions[-1]) else None
    decorators = _regions(model, getattr(model.function(node), "decorator_list", []))
    return next((each for each in decorators if _is_on(model, each)), None)


def _regions(model: Model, nodes: list[ast.expr]) -> list[ast.Call]:
    """The calls of autocast that make some contexts."""
    made = (source for each in nodes for source in sources(model, each))
    calls = (each for each in made if isinstance(each, ast.Call))
    return [call for call in calls if model.symbols.full_name(call.func) in _AUTOCAST]


def _is_on(model: Model, node: ast.Call) -> bool:
    is_old = model.symbols.full_name(node.func).startswith("torch.cuda.")
    return not is_false(model.call(node).argument("enabled", 0 if is_old else 2))


def _is_pass(call: CallSite) -> bool:
    """True for the method of a loss; `accelerator.backward(loss)` leaves autocast by itself."""
    return not call.node.args and (call.receiver is None or call.receiver.tensor is not None or not call.target)
