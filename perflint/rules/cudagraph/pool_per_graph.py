"""TPF813: CUDA graphs of several sizes, each with memory of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._turns import Turn, nodes_of, turn_around
from perflint.rules.base import Files, FileSite, Rule
from perflint.semantics.binders import COMPREHENSIONS, LOOPS
from perflint.semantics.model import Model
from perflint.semantics.regions.captured import Capture
from perflint.semantics.structure import last_name


class PoolPerGraph(Rule):
    """A loop records CUDA graphs, and each one gets a memory pool of its own.

    ## What it does
    Finds captures without `pool=` in code that a loop runs: `torch.cuda.graph(graph)` and `graph.capture_begin()`.

    ## Why is this bad
    A graph keeps the memory of all its intermediate results for as long as it lives. Graphs that never run at the
    same time can share it: with one pool, and the largest size first, the memory is that of the largest graph.
    Without one it is the sum of all. How much that is depends on the model: six graphs of GPT-2, for 1 to 32 × 256
    tokens, took 1.28 GiB instead of 0.89 on an H200, and the same time.

    ## When it is fine
    - Graphs that run at the same time, or whose outputs are read after another one was replayed: they need pools of
      their own.
    - Few or small graphs.

    ## Bad
    ```python
    import torch

    def record(model: torch.nn.Module):
        graphs = {}
        for size in (1, 2, 4, 8, 16, 32):
            x = torch.zeros(size, 512, device="cuda")
            model(x)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = model(x)
            graphs[size] = graph, x, out
        return graphs
    ```

    ## Good
    ```python
    import torch

    def record(model: torch.nn.Module):
        graphs, pool = {}, torch.cuda.graph_pool_handle()
        for size in (32, 16, 8, 4, 2, 1):
            x = torch.zeros(size, 512, device="cuda")
            model(x)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                out = model(x)
            graphs[size] = graph, x, out
        return graphs
    ```

    ## Fix safety
    No fix: graphs with one pool must be replayed in the order in which they were recorded, or one at a time.

    ## How a GPU shows it
    `torch.cuda.memory_reserved()` grows by the same amount with each capture.

    ## References
    - [CUDA graphs: memory](https://docs.pytorch.org/docs/stable/notes/cuda.html#sharing-memory-across-captures)
    """

    code, name = "TPF813", "pool-per-graph"
    effect, severity = Effect.MEMORY, Severity.INFO
    measured = ("pool-per-graph-gpt",)
    listens = (Files("torch", also=("cuda.graph", "capture_begin", "CUDAGraph")),)
    since = (1, 10)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for capture in model.captures.blocks:
            loop = None if _has_pool(model, capture) else turn_around(model, capture.start)
            if isinstance(loop, (*LOOPS, *COMPREHENSIONS)) and not _is_replayed(model, loop):
                yield self.finding(
                    site,
                    f"the loop of line {loop.lineno} records several CUDA graphs, and each keeps memory of its own",
                    confidence=Confidence.MEDIUM,
                    heat=Heat.WARM,
                    span=model.source.span(capture.start),
                    help="Pass `pool=torch.cuda.graph_pool_handle()`, made once before the loop, and record the "
                    "largest graph first.",
                )


def _has_pool(model: Model, capture: Capture) -> bool:
    """True if a capture is given a pool, or may be."""
    start = capture.start
    if not isinstance(start, ast.Call):
        return True
    call = model.call(start)
    position = 0 if last_name(start) == "capture_begin" else 1
    return call.has_unpacking or call.argument("pool", position) is not None


def _is_replayed(model: Model, loop: Turn) -> bool:
    """True if the loop that records a graph replays it, too: the capture itself is the mistake there."""
    return any(isinstance(node, ast.Call) and last_name(node) == "replay" for node in nodes_of(model, loop))
