"""TPF805: keeping the outputs of a CUDA graph while it is replayed again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.edits import replace
from perflint.rules._memory.flows import uses_of
from perflint.rules._memory.operators import records
from perflint.rules._statements import block_of
from perflint.rules._turns import call_in_loop
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.rules.cudagraph._outputs import Output, graphs_of, outputs, records_again, runs_graphs
from perflint.rules.cudagraph._replays import loop_around
from perflint.semantics.around import is_inside
from perflint.semantics.dataflow.definitions import definitions
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, path_of, walk
from perflint.source.concrete import code, cst

_KEEPS = frozenset({"append", "appendleft", "insert"})
_COLLECTS = frozenset({"list", "tuple", "set", "deque"})


class KeptGraphOutput(Rule):
    """Outputs of a CUDA graph are collected while it runs again.

    ## What it does
    Finds outputs of a CUDA graph that a loop, a comprehension or a method collects in a list or dict without
    `clone()`, those that the next iteration of a loop reads, and those that are read after the next call: tensors
    that a captured block created, after `replay()`, results of callables of `make_graphed_callables`, and results of
    functions and modules that are compiled with `mode="reduce-overhead"`, `mode="max-autotune"` or
    `backend="cudagraphs"`.

    ## Why is this bad
    A graph writes to the same memory each time. After `graph.replay()` all entries of the list are
    one tensor that holds the last result, without an error. Under `torch.compile` the next call may
    reuse the memory of the earlier outputs: reading one then raises "accessing tensor output of
    CUDAGraphs that has been overwritten by a subsequent run". It is a warning because results are
    wrong, or the program raises, not because of what it costs.

    ## When it is fine
    The output is copied (`clone()`, `.cpu()`, `+ 0`), or used up before the next call. The input is on the CPU:
    `torch.compile` then uses no graphs.
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
    listens = (
        Files("append", "insert", "] =", "+= [", " for ", "self.", "reduce-overhead", "autotune", "make_graphed"),
    )
    since = (2, 0)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        if not runs_graphs(model):
            return
        seen: set[ast.expr] = set()
        later = (*_read_in_next_iteration(model), *_read_in_next_call(model), *_read_after_next_run(model))
        for kept, around in (*_collected(model), *later):
            found = _overwritten(model, kept, around)
            if found is None or kept in seen:
                continue
            seen.add(kept)
            yield self.finding(
                site,
                f"{shown(site, kept)} is kept, and {found.clause}",
                confidence=found.confidence,
                heat=Heat.WARM,
                span=model.source.span(kept),
                help="Keep a copy: `.clone()`.",
                fix=_fix(model, kept),
            )


def _collected(model: Model) -> Iterator[tuple[ast.expr, ast.AST]]:
    """The expressions that are put into a list or dict, each with the code that runs again and again."""
    for call in model.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _KEEPS and call.args:
            yield from _parts(call.args[-1], _repeated(model, call, call.func.value))
    for assignment in model.nodes(ast.Assign):
        target = assignment.targets[0]
        if isinstance(target, ast.Subscript) and model.value(target.value).tensor is None:
            yield from _parts(assignment.value, _repeated(model, assignment, target.value))
    for added in model.nodes(ast.AugAssign):
        if isinstance(added.value, (ast.List, ast.Tuple)):
            yield from _parts(added.value, _repeated(model, added, added.target))
    for listed in model.nodes(ast.ListComp):
        yield from _parts(listed.elt, listed)
    for each in model.nodes(ast.DictComp):
        yield from _parts(each.value, each)
    for passed in model.nodes(ast.GeneratorExp):
        taker = model.parent(passed)
        if isinstance(taker, ast.Call) and last_name(taker) in _COLLECTS:
            yield from _parts(passed.elt, passed)


def _parts(node: ast.expr, around: ast.AST | None) -> Iterator[tuple[ast.expr, ast.AST]]:
    """The parts of a tuple, list or dict that is spelled out, with the code around it, if there is any."""
    if around is None:
        return
    if isinstance(node, (ast.Tuple, ast.List, ast.Dict)):
        for part in node.values if isinstance(node, ast.Dict) else node.elts:
            yield from _parts(part, around)
    else:
        yield node, around


def _repeated(model: Model, node: ast.AST, holder: ast.expr) -> ast.AST | None:
    """The loop around a node; the function around it, if it fills what outlives its calls."""
    loop, function = loop_around(model, node), model.function(node)
    if loop is not None or path_of(holder).startswith("self."):
        return loop or function
    call = call_in_loop(model, function)
    lasts = call is not None and isinstance(holder, ast.Name) and call.outer(model, holder, is_rebound=False)
    return function if lasts else None


def _read_in_next_iteration(model: Model) -> Iterator[tuple[ast.expr, ast.AST]]:
    """The outputs that a loop binds to a name which the next iteration reads after its run: `previous = y`."""
    for assignment in model.nodes(ast.Assign):
        target, loop = assignment.targets[0], loop_around(model, assignment)
        if loop is None or not isinstance(target, ast.Name):
            continue
        if not isinstance(assignment.value, (ast.Name, ast.Attribute)):
            continue
        found = _overwritten(model, assignment.value, loop)
        if found is None:
            continue
        for read in model.names(loop, target.id):
            is_between = _place(found.run) < _place(read) < _place(assignment) and not is_inside(model, read, found.run)
            if is_between and isinstance(read.ctx, ast.Load) and not isinstance(model.parent(read), ast.Compare):
                if any(each.value is assignment.value for each in definitions(model.symbols, read, read.id).bindings):
                    yield assignment.value, loop
                    break


def _read_in_next_call(model: Model) -> Iterator[tuple[ast.expr, ast.AST]]:
    """The outputs that a method keeps in its object, and that its next call reads after its run: `self.last = y`."""
    for assignment in model.nodes(ast.Assign):
        path, kept, method = path_of(assignment.targets[0]), assignment.value, model.function(assignment)
        if method is None or not path.startswith("self.") or not isinstance(kept, (ast.Name, ast.Attribute)):
            continue
        found = _overwritten(model, kept, method)
        reads = [] if found is None else [each for each in walk(method) if isinstance(each, ast.Attribute)]
        for read in reads:
            assert found is not None
            is_read = isinstance(read.ctx, ast.Load) and path_of(read) == path
            if is_read and _place(found.run) < _place(read) < _place(assignment) and not _is_asked(model, read):
                yield kept, method
                break


def _read_after_next_run(model: Model) -> Iterator[tuple[ast.expr, ast.AST]]:
    """The outputs that are read after the same callable has run again in their block: `a, b = run(x), run(y)`."""
    for assignment in model.nodes(ast.Assign):
        target = assignment.targets[0]
        found = next(outputs(model, assignment.value), None) if isinstance(target, ast.Name) else None
        if found is None or not isinstance(target, ast.Name):
            continue
        by, callee = graphs_of(model, found.run), path_of(found.run.func)
        # Under torch.compile, outputs stay while a backward pass still needs them.
        if not by or not callee or ("make_graphed" not in by and records(model, found.run)):
            continue
        block = block_of(model, assignment)
        after = [part for each in block[block.index(assignment) + 1 :] for part in walk(each)]
        again = next((part for part in after if isinstance(part, ast.Call) and path_of(part.func) == callee), None)
        reads = () if again is None else uses_of(model, target) or ()
        if again is not None and any(_place(again) < _place(use) and not is_inside(model, use, again) for use in reads):
            yield assignment.value, loop_around(model, assignment) or model.function(assignment) or model.source.tree


def _is_asked(model: Model, read: ast.Attribute) -> bool:
    """True if only the presence of a value is asked for: `self.last is None`."""
    return isinstance(model.parent(read), (ast.Compare, ast.If, ast.BoolOp))


def _place(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _overwritten(model: Model, kept: ast.expr, around: ast.AST) -> Output | None:
    """The output that an expression keeps although the code around it runs the graph again."""
    for found in outputs(model, kept):
        if (is_inside(model, found.run, around) or found.run is around) and not records_again(model, around):
            return found
    return None


def _fix(model: Model, kept: ast.expr) -> Fix | None:
    written = model.source.concrete(kept)
    if not isinstance(written, (cst.Name, cst.Attribute, cst.Call)):
        return None
    cloned = cst.Call(cst.Attribute(written, cst.Name("clone")))
    edit = replace(model.source, model.source.span(kept), code(cloned))
    return Fix("Keep a copy", Safety.RISKY, (edit,))
