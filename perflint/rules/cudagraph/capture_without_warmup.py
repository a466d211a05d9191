"""TPF802: recording a CUDA graph from code that has not run yet."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules.base import Files, FileSite, Rule
from perflint.rules.cudagraph._replays import Recorded, recorded
from perflint.semantics.around import is_inside
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in
from perflint.semantics.values import Function, Instance

_WARMED = re.compile(r"warm_?up|wait_stream|cuda\.Stream\(|cuda\.stream\(|num_warmup", re.IGNORECASE)


class CaptureWithoutWarmup(Rule):
    """A CUDA graph records code that has not run yet.

    ## What it does
    Finds `with torch.cuda.graph(g):` blocks that run a module or a function of the project, if the
    same function (or the top level) neither calls it before nor uses a side stream or the word
    warm-up.

    ## Why is this bad
    The first run of a model does more than launch kernels: libraries create their handles and
    workspaces, cuDNN tries algorithms, Triton compiles, autograd and DDP allocate memory that they
    keep. During a capture that fails ("operation not permitted when stream is capturing"), or is
    recorded with the kernels and repeated by each replay. Gradients that are allocated in the
    capture belong to the graph's memory.

    ## When it is fine
    The code ran before, perhaps in another function: perflint checks only the function that
    records. Elementwise operations on tensors need no warm-up. `make_graphed_callables` does its
    own, three iterations by default.

    ## Bad
    ```python
    import torch

    def record(model: torch.nn.Module, static_x: torch.Tensor):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            static_y = model(static_x)
        return graph, static_y
    ```

    ## Good
    ```python
    import torch

    def record(model: torch.nn.Module, static_x: torch.Tensor):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                model(static_x)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            static_y = model(static_x)
        return graph, static_y
    ```

    ## Fix safety
    No fix: only the author can say how often to run it, and on which data.

    ## How a GPU shows it
    The capture fails, or a profile of a replay shows more kernels than one of an eager step.

    ## References
    - [CUDA graphs: whole-network capture](https://docs.pytorch.org/docs/stable/notes/cuda.html#whole-network-capture)
    """

    code, name = "TPF802", "capture-without-warmup"
    effect, severity = Effect.CAPTURE, Severity.INFO
    listens = (Files("graph", "Graph"),)
    since = (1, 10)

    def check(self, site: FileSite) -> Iterator[Finding]:
        if not site.model.captures.blocks:
            return
        model = site.model
        for block in recorded(model):
            first = _first_work(model, block)
            if first is None or _is_warmed(model, block):
                continue
            yield self.finding(
                site,
                f"`{site.text(first.func)}` has not run in this function before the CUDA graph records it: work of"
                " the first run fails, or becomes part of the graph",
                confidence=Confidence.MEDIUM,
                heat=Heat.WARM,
                span=model.source.span(block.capture.start),
                help="Run it a few times on a side stream first (11 times under DDP).",
            )


def _first_work(model: Model, block: Recorded) -> ast.Call | None:
    """The first call in a block of a module or of a function of the project."""
    for call in calls_in(*block.capture.body):
        value = model.value(call.func)
        is_module = isinstance(value, Instance) and model.is_module(value)
        if is_module or isinstance(value, Function) or model.target(call) == "torch.nn.Module.__call__":
            return call
    return None


def _is_warmed(model: Model, block: Recorded) -> bool:
    """True if the scope of a block runs the recorded code before, or mentions a warm-up."""
    called = {ast.unparse(call.func) for call in calls_in(*block.capture.body)}
    scope = block.scope if block.scope is not None else model.source.tree
    if _WARMED.search(_text_before(model, scope, block)):
        return True
    before = (call for call in calls_in(scope) if call.lineno < block.capture.start.lineno)
    return any(
        ast.unparse(call.func) in called
        and isinstance(model.value(call.func), (Instance, Function))
        and not any(is_inside(model, call, statement) for statement in block.capture.body)
        for call in before
    )


def _text_before(model: Model, scope: ast.AST, block: Recorded) -> str:
    first = getattr(scope, "lineno", 1)
    return "".join(model.source.lines[first - 1 : block.capture.start.lineno - 1])
