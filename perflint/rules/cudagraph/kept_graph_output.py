"""TPF805: keeping the outputs of a CUDA graph while it is replayed again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.edits import replace
from perflint.rules.base import Files, Rule
from perflint.rules.cudagraph._replays import is_visible, loop_around, recorded, replays
from perflint.semantics.model import Model
from perflint.semantics.regions.compile_calls import options_of
from perflint.semantics.sites import FileSite
from perflint.semantics.structure import path_of, walk
from perflint.semantics.values import Function
from perflint.source.concrete import code, cst
from perflint.source.quoting import quoted

_KEEPS = frozenset({"append", "appendleft", "insert"})
_WORDS = ("reduce-overhead", "max-autotune", "cudagraphs", "replay")


class KeptGraphOutput(Rule):
    """Outputs of a CUDA graph are collected while it runs again.

    ## What it does
    Finds, in loops, outputs of a CUDA graph that are put into a list or dict without `clone()`:
    tensors that a captured block created, after `replay()`, and results of a function that is
    compiled with `mode="reduce-overhead"` or `"max-autotune"`.

    ## Why is this bad
    A graph writes to the same memory each time. After `graph.replay()` all entries of the list are
    one tensor that holds the last result, without an error. Under `torch.compile` the next call may
    reuse the memory of the earlier outputs: reading one then raises "accessing tensor output of
    CUDAGraphs that has been overwritten by a subsequent run". It is a warning because results are
    wrong, or the program raises, not because of what it costs.

    ## When it is fine
    The output is copied (`clone()`, `.cpu()`, `+ 0`), or used up before the next call.
    `torch.compiler.cudagraph_mark_step_begin()` marks where steps begin and only the last output is
    read. A backward pass still needs the outputs: then they are kept.

    ## Bad
    ```python
    import torch

    @torch.compile(mode="reduce-overhead")
    def step(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * 2

    @torch.no_grad()
    def run(batches):
        outputs = []
        for x in batches:
            outputs.append(step(x))
        return torch.cat(outputs)
    ```

    ## Good
    ```python
    import torch

    @torch.compile(mode="reduce-overhead")
    def step(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * 2

    @torch.no_grad()
    def run(batches):
        outputs = []
        for x in batches:
            outputs.append(step(x).clone())
        return torch.cat(outputs)
    ```

    ## Fix safety
    Risky: `clone()` costs a copy of each output, and results that a replay overwrote are now kept,
    so results change.

    ## How a GPU shows it
    `len({t.data_ptr() for t in outputs})` is 1; under `torch.compile` the error above.

    ## References
    - [CUDAGraph Trees](https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html#limitations)
    - [CUDA graphs](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs)
    """

    code, name = "TPF805", "kept-graph-output"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Files(*_WORDS, also=("append", "] =")),)
    since = (2, 0)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for kept in _kept_in_loops(model):
            found = _of_replay(model, kept) or _of_compiled(model, kept)
            if found is None:
                continue
            what, confidence = found
            yield self.finding(
                site,
                f"{quoted(site.text(kept))} is kept, and {what}",
                confidence=confidence,
                heat=Heat.WARM,
                span=model.source.span(kept),
                help="Keep a copy: `.clone()`.",
                fix=_fix(model, kept),
            )


def _kept_in_loops(model: Model) -> Iterator[ast.expr]:
    """The value that is appended, or stored under an index or key, in a loop."""
    for call in model.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _KEEPS and call.args:
            if loop_around(model, call) is not None:
                yield call.args[-1]
    for assignment in model.nodes(ast.Assign):
        target = assignment.targets[0]
        if isinstance(target, ast.Subscript) and loop_around(model, assignment) is not None:
            if model.value(target.value).tensor is None:
                yield assignment.value


def _of_replay(model: Model, kept: ast.expr) -> tuple[str, Confidence] | None:
    path = path_of(kept)
    loop = loop_around(model, kept)
    if not path or loop is None:
        return None
    for block in recorded(model):
        if path not in block.makes or not is_visible(model, block, kept, path):
            continue
        if any(each is block.capture.start for each in walk(loop)):
            return None
        again = [call for call in replays(model) if loop_around(model, call) is loop]
        if again and not _is_rebound(loop, path):
            where = f"`{model.source.written(again[0])}`"
            return f"the next {where} overwrites it", Confidence.HIGH
    return None


def _is_rebound(loop: ast.AST, path: str) -> bool:
    return any(
        isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store) and path_of(node) == path
        for node in walk(loop)
    )


def _of_compiled(model: Model, kept: ast.expr) -> tuple[str, Confidence] | None:
    if not isinstance(kept, ast.Call) or model.says("cudagraph_mark_step_begin"):
        return None
    text = ""
    value = model.value(kept.func)
    if isinstance(value, Function):
        compiled = model.compiled_function(value)
        if compiled is not None and compiled.depth == 0 and compiled.options.uses_graphs:
            text = compiled.options.text
    path = path_of(kept.func)
    made = _made(model, path) if path else None
    if made is not None:
        options = options_of(model, made)
        text = options.text if options is not None and options.uses_graphs else ""
    if not text:
        return None
    return f"the next call of the function that `{text}` compiled may overwrite it", Confidence.MEDIUM


def _made(model: Model, path: str) -> ast.Call | None:
    """The call of torch.compile that a path is assigned, if nothing else is."""
    found = [each.value for each in model.nodes(ast.Assign) if any(path_of(t) == path for t in each.targets)]
    last = found[-1] if found else None
    return last if isinstance(last, ast.Call) and model.target(last) == "torch.compile" else None


def _fix(model: Model, kept: ast.expr) -> Fix | None:
    written = model.source.concrete(kept)
    if not isinstance(written, (cst.Name, cst.Attribute, cst.Call)):
        return None
    cloned = cst.Call(cst.Attribute(written, cst.Name("clone")))
    edit = replace(model.source, model.source.span(kept), code(cloned))
    return Fix("Keep a copy", Safety.RISKY, (edit,))
