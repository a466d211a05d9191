"""TPF816: gradients that are dropped between the replays of the backward pass that fills them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules._methods import calls_named, is_false
from perflint.rules._sources import given
from perflint.rules.base import Files, FileSite, Rule, Site
from perflint.rules.cudagraph._replays import Recorded, is_between, recorded, replays_of
from perflint.semantics.model import Model
from perflint.semantics.regions.captured import Capture
from perflint.semantics.structure import is_none, last_name
from perflint.source.quoting import quoted

_DROPS = ("torch.optim.Optimizer.zero_grad", "torch.nn.Module.zero_grad", "")


class DroppedGradients(Rule):
    """The gradients that a recorded backward pass fills are dropped between two replays.

    ## What it does
    Finds `zero_grad()` and `p.grad = None` beside the replays of a CUDA graph that recorded `backward()`, where the
    optimizer steps outside of the graph.

    ## Why is this bad
    The graph writes to the memory that the gradients had at the capture. `zero_grad()` sets `grad` to None, and a
    replay runs no Python that would set it again. The optimizer skips parameters without a gradient, so nothing is
    trained from then on, without an error. It is a warning because the results are wrong.

    ## When it is fine
    - Before the capture: the backward pass then makes the gradients in the memory of the graph.
    - `zero_grad(set_to_none=False)`, which fills the same memory. It is not needed: each replay overwrites it.
    - The optimizer steps in the graph, too, or the code records again after it.

    ## Bad
    ```python
    import torch

    def train(model, optimizer, loader, static_x):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = model(static_x).sum()
            loss.backward()
        for x in loader:
            static_x.copy_(x, non_blocking=True)
            optimizer.zero_grad()
            graph.replay()
            optimizer.step()
    ```

    ## Good
    ```python
    import torch

    def train(model, optimizer, loader, static_x):
        optimizer.zero_grad()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = model(static_x).sum()
            loss.backward()
        for x in loader:
            static_x.copy_(x, non_blocking=True)
            graph.replay()
            optimizer.step()
    ```

    ## Fix safety
    No fix: whether gradients of several replays are to be added only the author knows.

    ## How a GPU shows it
    `next(model.parameters()).grad` is None after a replay, and the loss does not change.

    ## References
    - [CUDA graphs: whole-network capture](https://docs.pytorch.org/docs/stable/notes/cuda.html#whole-network-capture)
    - [zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html):
      `set_to_none=True` is the default since torch 2.0
    """

    code, name = "TPF816", "dropped-gradients"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Files("zero_grad", ".grad = None", also=("replay",)),)
    since = (2, 0)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        found = [(block, replays_of(model, block)) for block in _of_backward(model)] if model.captures.blocks else []
        for drop in _drops(site) if found else ():
            if model.captures.of(drop) is not None:
                continue
            capture = next((b.capture for b, every in found if is_between(model, drop, b.capture, every)), None)
            if capture is not None:
                yield self.finding(
                    Site(model, drop),  # type: ignore[arg-type]
                    f"{quoted(model.source.written(drop))} drops the gradients that the CUDA graph of line "
                    f"{capture.start.lineno} fills: the optimizer finds none after the next replay",
                    heat=Heat.HOT,
                    help="Remove it: each replay overwrites the gradients in place.",
                )


def _drops(site: FileSite) -> Iterator[ast.Call | ast.Assign]:
    """The calls and assignments of a file that set gradients to None."""
    for call in calls_named(site, "zero_grad"):
        if call.target in _DROPS and not is_false(given(call.node, "set_to_none", 0)) and not call.has_unpacking:
            yield call.node
    for statement in site.model.nodes(ast.Assign):
        target = statement.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == "grad" and is_none(statement.value):
            yield statement


def _of_backward(model: Model) -> list[Recorded]:
    """The recorded blocks that run a backward pass without the step of an optimizer."""
    found: dict[Capture, set[str]] = {}
    for call in model.nodes(ast.Call):
        name = last_name(call)
        capture = model.captures.of(call) if name in ("backward", "step") else None
        if capture is not None:
            found.setdefault(capture, set()).add(name)
    return [block for block in recorded(model) if found.get(block.capture) == {"backward"}]
