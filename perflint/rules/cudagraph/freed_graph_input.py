"""TPF810: a tensor that a CUDA graph reads, and that nothing keeps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules.base import Files, FileSite, Rule
from perflint.rules.cudagraph._replays import Recorded, loop_around, recorded
from perflint.semantics.around import is_inside
from perflint.semantics.binders import How
from perflint.semantics.model import Model
from perflint.semantics.structure import GROWS, names_in, path_of, walk
from perflint.semantics.values import Device, Tensor

_CLONE = "torch.Tensor.clone"


class FreedGraphInput(Rule):
    """A CUDA graph outlives a tensor that it reads.

    ## What it does
    Finds functions that record a CUDA graph of a local tensor and return the graph or its outputs, but not that tensor:
    nothing uses the tensor after the capture, or only `del` does.

    ## Why is this bad
    A graph holds the address of its inputs, and does not keep their memory. It is free when the function
    returns, and the next tensor of that size gets it: each replay then reads whatever is there. Results are wrong
    without an error. Only tensors that are allocated inside of the capture belong to the pool of the graph. It is a
    warning because results are wrong, not because of what it costs.

    ## When it is fine
    - The function returns the tensor, stores it in an object or a dict, or an inner function uses it.
    - The graph is replayed in the same function alone.
    - A tensor that the function got, or a part of one: the caller may keep it.
    - Constants, `torch.tensor([0.5, 2.0])`, are reported as information: the same fault, in memory that is small and
      rarely taken by another tensor at once.

    ## Bad
    ```python
    import torch

    def capture(model: torch.nn.Module):
        static_x = torch.zeros(8, 512, device="cuda")
        model(static_x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = model(static_x)
        return graph, out
    ```

    ## Good
    ```python
    import torch

    def capture(model: torch.nn.Module):
        static_x = torch.zeros(8, 512, device="cuda")
        model(static_x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = model(static_x)
        return graph, static_x, out
    ```

    ## Fix safety
    No fix: the callers have to take the tensor, and to copy new data into it.

    ## How a GPU shows it
    torch 2.13 looks for it at the capture: `torch.cuda.graph(graph, check_input_liveness=True)`.

    ## References
    - [CUDA graphs](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs): "the captured graph's memory"
    """

    code, name = "TPF810", "freed-graph-input"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Files("torch", also=("cuda.graph", "capture_begin")),)
    since = (1, 10)

    def check(self, site: FileSite) -> Iterator[Finding]:
        if not site.model.captures.blocks:
            return
        model = site.model
        for block in recorded(model):
            for name in sorted(block.reads):
                end = _end(block, name) if _is_freed(model, block, name) else None
                if end is not None:
                    yield self.finding(
                        site,
                        f"`{name}` is freed "
                        + ("at the end of the function" if end is block.capture.start else "here")
                        + f", and the CUDA graph of line {block.capture.start.lineno} still reads its memory",
                        severity=Severity.INFO if _is_constant(model, block, name) else Severity.WARNING,
                        heat=Heat.WARM,
                        span=model.source.span(end),
                        help=f"Return `{name}` with the graph, or keep it in an object that holds both.",
                    )


def _is_freed(model: Model, block: Recorded, name: str) -> bool:
    """True if a block reads a local tensor that the code around the block makes, and that nothing uses after it."""
    if block.scope is None or isinstance(block.scope, ast.Lambda) or "." in name:
        return False
    uses = [each for each in walk(block.scope) if isinstance(each, ast.Name) and each.id == name]
    inside = [use for use in uses if any(is_inside(model, use, outer) for outer in block.capture.body)]
    read = next((use for use in inside if isinstance(use.ctx, ast.Load)), None)
    if read is None or not _is_made_here(model, read) or not _is_on_device(model, read):
        return False
    first, last = block.capture.start.lineno, max(each.end_lineno or 0 for each in block.capture.body)
    later = [use for use in uses if use.lineno > last and not isinstance(use.ctx, ast.Del)]
    captured = model.symbols.variable(read).is_captured
    looped = loop_around(model, block.capture.start) is not None
    kept = [use for use in uses if use.lineno < first and isinstance(use.ctx, ast.Load) and _is_kept(model, use)]
    return not (later or captured or looped or kept)


def _is_constant(model: Model, block: Recorded, name: str) -> bool:
    """True if a name is bound to numbers of Python alone: a program would not fill them again."""
    nodes = walk(block.scope) if block.scope is not None else ()
    uses = (each for each in nodes if isinstance(each, ast.Name) and each.id == name)
    calls = [each for use in uses for each in model.symbols.variable(use).assigned if isinstance(each, ast.Call)]
    return bool(calls) and all(model.target(each) in ("torch.tensor", "torch.scalar_tensor") for each in calls)


def _end(block: Recorded, name: str) -> ast.stmt | ast.expr | None:
    """The statement that frees a local tensor, in a function that returns the graph or its outputs.

    The capture itself, if an object keeps the graph and nothing returns it.
    """
    names = block.makes | names_in(block.capture.start)
    nodes = [*walk(block.scope)] if block.scope is not None else []
    start = block.capture.start
    if any(path_of(each).startswith("self.") for each in walk(start) if isinstance(each, ast.Attribute)):
        # The object keeps the graph, and the tensor goes with the function.
        return start
    returned = [each for each in nodes if isinstance(each, ast.Return) and names_in(each) & names]
    deleted = [each for each in nodes if isinstance(each, ast.Delete) and name in names_in(each)]
    return (deleted or returned)[-1] if returned else None


def _is_made_here(model: Model, use: ast.Name) -> bool:
    """True if a function of torch made the tensor, which nothing else refers to: a factory, or `clone`."""
    variable = model.symbols.variable(use)
    calls = [each for each in variable.assigned if isinstance(each, ast.Call)]
    constants = [each for each in variable.assigned if isinstance(each, ast.Constant)]
    stores = [each for each in variable.bindings if each.how not in (How.DELETED, How.GROWN)]
    if not calls or len(calls) + len(constants) < len(stores):
        return False
    targets = list(map(model.target, calls))
    return all(each == _CLONE or (each.startswith("torch.") and each.count(".") == 1) for each in targets)


def _is_on_device(model: Model, use: ast.Name) -> bool:
    value = model.value(use)
    return isinstance(value, Tensor) and value.device is not Device.CPU


def _is_kept(model: Model, use: ast.Name) -> bool:
    """True if a use may give a tensor to other code that keeps it: it is stored, or a method of a container gets it."""
    parent = model.parent(use)
    while isinstance(parent, (ast.Tuple, ast.List, ast.Dict, ast.keyword)):
        parent = model.parent(parent)
    if isinstance(parent, ast.Assign):
        return True
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr in GROWS
