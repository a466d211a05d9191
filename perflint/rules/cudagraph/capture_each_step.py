"""TPF815: a CUDA graph that is recorded in each step."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules._guards import is_done_once
from perflint.rules._methods import in_tests
from perflint.rules._turns import nodes_of, places, turn_around
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.rules.cudagraph._replays import graph_of, loop_around, recorded, replays
from perflint.semantics.around import is_inside
from perflint.semantics.model import Model
from perflint.semantics.regions.captured import GRAPHED, Capture
from perflint.semantics.structure import path_of


class CaptureEachStep(Rule):
    """A CUDA graph is recorded in each step, and replayed once or not at all.

    ## What it does
    Finds captures and `make_graphed_callables` in code that runs each step, and in loops that replay each graph once in
    the same iteration.

    ## Why is this bad
    A graph pays by its replays. A capture runs the Python code as an eager step does; before that it waits for the
    GPU, returns all unused memory to the driver, and takes a new pool. Afterwards the graph is built for the GPU.
    A forward of eight small blocks was 6.2 × slower on an H200 if its graph was recorded in each step.

    ## When it is fine
    - One graph for each shape, behind a test whether it exists already, or in a cached function.
    - A loop that records several graphs and keeps them.
    - Benchmarks, which replay each graph many times, and tests.

    ## Bad
    ```python
    import torch

    def run(model: torch.nn.Module, loader):
        for x in loader:
            static_x = x.cuda(non_blocking=True)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = model(static_x)
            graph.replay()
    ```

    ## Good
    ```python
    import torch

    def run(model: torch.nn.Module, loader, static_x: torch.Tensor):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = model(static_x)
        for x in loader:
            static_x.copy_(x, non_blocking=True)
            graph.replay()
    ```

    ## Fix safety
    No fix: the inputs need memory that stays, and the author knows which shapes there are.

    ## How a GPU shows it
    A timeline shows `cudaStreamBeginCapture`, `cudaGraphInstantiate` and `cudaFree` in each step.

    ## References
    - [CUDA graphs](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs)
    """

    code, name = "TPF815", "capture-each-step"
    effect, severity = Effect.CAPTURE, Severity.ERROR
    measured = ("capture-each-step",)
    costs = "recording the graph of eight small blocks in each step makes a forward {0} slower"
    listens = (Files("graph", "Graph"),)
    since = (1, 10)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        if in_tests(model):
            return
        for start in _starts(model):
            yield self.finding(
                site,
                f"{shown(site, start)} records a CUDA graph in each step",
                heat=Heat.HOT,
                span=model.source.span(start),
                help="Record it once, before the loop, and copy each batch into its input.",
            )


def _starts(model: Model) -> Iterator[ast.expr]:
    """The calls that record a graph in each step."""
    for block in recorded(model):
        start = block.capture.start
        if is_done_once(model, start) or any(_is_kept(model, each) for each in _graphs(start)):
            continue
        if model.heat(start) is Heat.HOT or _is_replayed_once(model, block.capture):
            yield start
    for call in model.nodes(ast.Call):
        if model.target(call) in GRAPHED and model.heat(call) is Heat.HOT and not is_done_once(model, call):
            yield call


def _is_replayed_once(model: Model, capture: Capture) -> bool:
    """True if each iteration of a loop records a graph, replays it outside of inner loops, and does not keep it."""
    turn = turn_around(model, capture.start)
    if turn is None or isinstance(turn, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    nodes = nodes_of(model, turn)
    named = {each.id for each in _graphs(capture.start)}
    for call in replays(model):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if call not in nodes or not isinstance(owner, ast.Name) or owner.id not in named:
            continue
        inner = loop_around(model, call)
        is_alone = inner is None or inner is turn or is_inside(model, capture.start, inner)
        if is_alone and model.function(call) is model.function(capture.start):
            return True
    return False


def _graphs(start: ast.expr) -> list[ast.Name]:
    """The name of the graph that a capture fills."""
    graph = graph_of(start)
    return [graph] if isinstance(graph, ast.Name) else []


def _is_kept(model: Model, graph: ast.Name) -> bool:
    """True if a graph goes to other code than its capture and its replays, here or in the caller: into a container."""
    for use in model.symbols.variable(graph).uses:
        parent = model.parent(use)
        parent = model.parent(parent) if isinstance(parent, ast.keyword) else parent
        is_method = isinstance(parent, ast.Attribute) and parent.value is use
        is_capture = isinstance(parent, ast.Call) and path_of(parent.func).endswith("graph")
        if is_method or is_capture:
            continue
        received = _received(model, use)
        if received is None or _is_kept(model, received):
            return True
    return False


def _received(model: Model, returned: ast.expr) -> ast.Name | None:
    """The name that the only call of a function gives to a result, alone or as a part of a tuple."""
    outer, at = model.parent(returned), None
    if isinstance(outer, ast.Tuple):
        at, outer = outer.elts.index(returned), model.parent(outer)
    call = next(itertools.islice(places(model, returned), 1, None), None)
    if not isinstance(outer, ast.Return) or call is None or is_done_once(model, call):
        return None
    statement = model.parent(call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if at is not None:
        target = target.elts[at] if isinstance(target, ast.Tuple) and at < len(target.elts) else None
    return target if isinstance(target, ast.Name) else None
