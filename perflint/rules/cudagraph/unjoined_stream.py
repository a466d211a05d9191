"""TPF817: work of another stream that a capture does not wait for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.semantics.around import is_inside
from perflint.semantics.model import Model
from perflint.semantics.regions.captured import Capture
from perflint.semantics.structure import calls_in, last_name, names_in, path_of, walk

_STREAMS = ("torch.cuda.stream", "torch.cuda.streams.stream", "torch.cuda.StreamContext")
_WAITS = frozenset({"wait_stream", "wait_event", "synchronize", "wait", "record_event", "record"})


class UnjoinedStream(Rule):
    """A capture uses a second stream and does not wait for it.

    ## What it does
    Finds blocks `with torch.cuda.stream(side):` in code that a CUDA graph records, without a `wait_stream` or
    `wait_event` on both ends: the side stream must wait for the recorded one first, and the recorded one for it at
    last. Finds warm-ups on a side stream that does not wait for the stream that fills its inputs, too; these are
    information.

    ## Why is this bad
    A capture that ends before all its streams are joined raises `CUDA error: capturing stream has unjoined work`. Work
    of a stream that did not wait for the recorded one is not in the graph at all. A warm-up without a wait may read its
    inputs before they are written; its results count where it trains. It is a warning because the capture fails.

    ## When it is fine
    - Both waits stand in functions that the block calls.
    - After a warm-up no wait is needed: `torch.cuda.graph` waits for all streams when it begins.

    ## Bad
    ```python
    import torch

    def record(left, right, x: torch.Tensor):
        side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                b = right(x)
            a = left(x)
        return graph, x, a, b
    ```

    ## Good
    ```python
    import torch

    def record(left, right, x: torch.Tensor):
        side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                b = right(x)
            a = left(x)
            torch.cuda.current_stream().wait_stream(side)
        return graph, x, a, b
    ```

    ## Fix safety
    No fix: only the author knows where the results of the side stream are needed first.

    ## How a GPU shows it
    The capture raises an error.

    ## References
    - [CUDA graphs: streams](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs)
    - [Cross-stream dependencies of captures](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cross-stream-dependencies-and-events)
    """

    code, name = "TPF817", "unjoined-stream"
    effect, severity = Effect.CAPTURE, Severity.WARNING
    listens = (Files("stream(", also=("graph", "Graph")),)
    since = (1, 10)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for node in model.nodes(ast.With) if model.captures.blocks else ():
            stream = _stream(model, node)
            if stream is None:
                continue
            capture = model.captures.of(node)
            if capture is not None and model.captures.is_in_block(node):
                missing = _missing(model, node, stream, capture)
                if missing:
                    yield self._found(site, stream, f"{missing}, so that the capture fails", Severity.WARNING)
            elif capture is None and _warms_up(model, node) and not _waits(_before(model, node), stream):
                yield self._found(site, stream, "does not wait for the stream that fills its inputs", Severity.INFO)

    def _found(self, site: FileSite, stream: ast.expr, what: str, severity: Severity) -> Finding:
        return self.finding(
            site,
            f"the stream {shown(site, stream)} {what}",
            severity=severity,
            heat=Heat.WARM,
            span=site.model.source.span(stream),
            help="Begin with `side.wait_stream(torch.cuda.current_stream())`, and end with "
            "`torch.cuda.current_stream().wait_stream(side)`.",
        )


def _stream(model: Model, node: ast.With) -> ast.expr | None:
    """The stream of a block that runs on another one, if the file gives it a name."""
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call) and model.symbols.full_name(call.func) in _STREAMS:
            stream = model.call(call).argument("stream", 0)
            return stream if stream is not None and path_of(stream) else None
    return None


def _missing(model: Model, node: ast.With, stream: ast.expr, capture: Capture) -> str:
    """The wait that a recorded block of another stream lacks, in words; empty if it has both."""
    calls = [*calls_in(*capture.body)]
    first = [call for call in calls if call.lineno < node.lineno] + _before(model, node)
    after = [call for call in calls if call.lineno > (node.end_lineno or node.lineno) or is_inside(model, call, node)]
    if not _waits(first, stream):
        return "does not wait for the recorded one"
    return "" if _waits(after, stream) else "is not waited for at the end"


def _before(model: Model, node: ast.With) -> list[ast.Call]:
    """The calls of the function, or of the file, in front of a block, and those at its beginning."""
    place = model.function(node) or model.source.tree
    calls = [*calls_in(place)]
    start = [each for each in walk(node.body[0]) if isinstance(each, ast.Call)]
    return [each for each in calls if each.lineno < node.lineno] + start


def _waits(calls: list[ast.Call], stream: ast.expr) -> bool:
    """True if one of some calls may make a stream wait, or another one wait for it."""
    return any(last_name(call) in _WAITS and names_in(call) & names_in(stream) for call in calls) or any(
        last_name(call) == "synchronize" for call in calls
    )


def _warms_up(model: Model, node: ast.With) -> bool:
    """True if a block runs the same callee as a recorded block below in its function."""
    function = model.function(node)
    called = {ast.unparse(call.func) for call in calls_in(node)}
    for capture in model.captures.blocks:
        if model.function(capture.start) is function and capture.start.lineno > (node.end_lineno or node.lineno):
            if called & {ast.unparse(call.func) for call in calls_in(*capture.body)}:
                return True
    return False
