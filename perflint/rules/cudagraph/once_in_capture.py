"""TPF811: Python code in a recorded block that a replay does not run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.rules.cudagraph._replays import loop_around
from perflint.semantics.around import is_inside
from perflint.semantics.model import Model
from perflint.semantics.regions.captured import Capture
from perflint.semantics.structure import path_of
from perflint.semantics.values import scalar_type

_DRAWS = ("random.", "numpy.random.", "secrets.", "time.time", "time.perf_counter")
_SEEDS = frozenset({"seed", "manual_seed", "getstate", "setstate", "get_state", "set_state", "Random", "default_rng"})


class OnceInCapture(Rule):
    """A CUDA graph is recorded around Python code that is meant to run in each replay.

    ## What it does
    Finds random numbers of `random` and NumPy, clock times, and counters of Python in the code that a CUDA graph
    records.

    ## Why is this bad
    A graph records kernels. Python runs once, at the capture: the random number that it drew is used in each replay,
    and the counter stays at one. Nothing fails. It is a warning because results are wrong, not because of what it
    costs.

    ## When it is fine
    - A choice that is meant for the whole graph.
    - Counters of graphs, in a loop that records several: not reported.
    - Random numbers of the GPU: replays advance their state.

    ## Bad
    ```python
    import random
    import torch

    def capture(model: torch.nn.Module, static_x: torch.Tensor):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            shift = random.randint(0, 4)
            out = model(torch.roll(static_x, shift, -1))
        return graph, out
    ```

    ## Good
    ```python
    import random
    import torch

    def capture(model: torch.nn.Module, static_x: torch.Tensor):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = model(static_x)
        return graph, out

    def step(graph, static_x: torch.Tensor, x: torch.Tensor):
        static_x.copy_(torch.roll(x, random.randint(0, 4), -1))
        graph.replay()
    ```

    ## Fix safety
    No fix: the code has to move to the replays.

    ## How a GPU shows it
    Replays with the same input give the same results, where an eager run gives others.

    ## References
    - [CUDA graphs: constraints](https://docs.pytorch.org/docs/stable/notes/cuda.html#constraints)
    """

    code, name = "TPF811", "once-in-capture"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Files("graph", "Graph", also=("random", "+=", "time.")),)
    since = (1, 10)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        found: list[ast.Call | ast.AugAssign] = [*_drawn(model), *_counted(model)] if model.captures else []
        for node in found:
            capture = model.captures.surely_of(node)
            if capture is None:
                continue
            if isinstance(node, ast.AugAssign) and not _counts_replays(model, node, capture):
                continue
            yield self.finding(
                site,
                f"{shown(site, node)} runs once, while the CUDA graph of line {capture.start.lineno} "
                "is recorded, and in no replay",
                heat=Heat.WARM,
                span=model.source.span(node),
                help="Do it beside the replay, and copy what the graph needs into one of its inputs.",
            )


def _drawn(model: Model) -> Iterator[ast.Call]:
    """The calls that draw a random number in Python, or ask for the time."""
    for call in model.nodes(ast.Call):
        name = model.target(call) or model.symbols.full_name(call.func)
        if name.startswith(_DRAWS) and name.rpartition(".")[2] not in _SEEDS:
            yield call


def _counted(model: Model) -> Iterator[ast.AugAssign]:
    """The sums of numbers."""
    for statement in model.nodes(ast.AugAssign):
        if path_of(statement.target) and scalar_type(model.value(statement.target)) in ("int", "float"):
            yield statement


def _counts_replays(model: Model, node: ast.AugAssign, capture: Capture) -> bool:
    """True if a counter is older than the recorded block, which is recorded once."""
    path = path_of(node.target)
    if loop_around(model, capture.start) is not None or loop_around(model, node) is not None:
        return False
    every: list[ast.Name | ast.Attribute] = [*model.nodes(ast.Name), *model.nodes(ast.Attribute)]
    stores = (each for each in every if path_of(each) == path and each is not node.target)
    bound = [each for each in stores if isinstance(each.ctx, ast.Store)]
    outside = [each for each in bound if not any(is_inside(model, each, part) for part in capture.body)]
    return bool(outside) and (path.startswith("self.") or model.function(outside[0]) is model.function(node))
