"""Decides if a copy is part of the work of code that evaluates a model or prepares data, and does not train."""

from __future__ import annotations

import ast

from perflint.engine.policy.analyses import is_in_model, is_one_of_many, only_evaluates, updates_weights
from perflint.rules._places import loops_around, targets
from perflint.semantics.facts import conventions
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite, FileSite, Site
from perflint.semantics.structure import block_in, children, last_name, names_in, path_of, place_in, walk
from perflint.semantics.values import Function


def copies_for_evaluation(site: Site) -> bool:
    """True if a place in a program without training copies between NumPy and the GPU.

    Not in a model, nor in a loop over a loader's batches.
    """
    model = site.model
    if not isinstance(site, CallSite) or not (_comes_from_array(site) or _becomes_array(site)):
        return False
    if not only_evaluates(model) or is_in_model(model, site.node):
        return False
    return not is_in_batch(model, site.node)


def is_in_batch(model: Model, node: ast.AST) -> bool:
    """True if a place is in a loop over the batches of a loader."""
    loops = loops_around(model, node)
    return any(isinstance(loop, (ast.For, ast.AsyncFor)) and model.is_over_batches(loop.iter) for loop in loops)


def selects_for_evaluation(site: Site) -> bool:
    """True if a place is in a program without training: not in a model, nor in a loop over a loader's batches."""
    model = site.model
    if isinstance(site, FileSite) or not only_evaluates(model) or is_in_model(model, site.node):
        return False
    return not is_in_batch(model, site.node)


def reads_files(site: Site) -> bool:
    """True if a loop around a place reads a file in each iteration, and does not train."""
    model = site.model
    if isinstance(site, FileSite) or is_in_batch(model, site.node):
        return False
    loops = [loop for loop in loops_around(model, site.node) if isinstance(loop, (ast.For, ast.AsyncFor, ast.While))]
    return any(_reads_file(model, loop) for loop in loops) and not any(map(model.heat_map.work.steps, loops))


@once_per_node
def _reads_file(model: Model, loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """True if a loop calls a function that reads a file, beside its inner loops."""
    waiting: list[ast.AST] = [*loop.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and (_is_reader(model.target(node)) or _calls_reader(model, node)):
            return True
        if not isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting += children(node)
    return False


def _is_reader(target: str) -> bool:
    """True for functions that read a whole file. `open` may also write a line of a log."""
    if conventions.reads_item(target):
        return True
    return target.rpartition(".")[2] not in ("open", "File", "") and bool(conventions.opens_file(target))


def _calls_reader(model: Model, call: ast.Call) -> bool:
    """True if a call is of a short function of the project that reads a file itself."""
    for callee in model.value(call.func).members:
        if not isinstance(callee, Function):
            continue
        module = model.view.loaded(callee.module)
        info = module.function(callee.line, callee.column) if module is not None else None
        if module is None or info is None or (info.node.end_lineno or 0) - info.node.lineno > _LONGEST_READER:
            continue
        calls = (node for node in walk(info.node) if isinstance(node, ast.Call))
        if any(_is_reader(module.full_name(path_of(inner.func))) for inner in calls if path_of(inner.func)):
            return True
    return False


_LONGEST_READER = 40
"""Lines of a function that is searched for calls that read files."""


def writes_results(site: Site) -> bool:
    """True if the function around a place writes results to a file, in a file of a project that updates no weights.

    Not in a model, nor in code that a package offers to others.
    """
    model = site.model
    if isinstance(site, FileSite) or updates_weights(model) or model.is_offered or is_in_model(model, site.node):
        return False
    function = model.function(site.node)
    return function is not None and is_one_of_many(model) and _writes(model, function)


@once_per_node
def _writes(model: Model, function: ast.AST) -> bool:
    return any(isinstance(node, ast.Call) and conventions.makes_bytes(last_name(node)) for node in walk(function))


def copies_state(site: Site) -> bool:
    """True if a call copies a tensor of `model.state_dict()`, as for a checkpoint or the best weights so far."""
    if not isinstance(site, CallSite):
        return False
    names = names_in(site.node)
    return any(
        isinstance(source, ast.Call) and last_name(source) in ("items", "values") and _is_state_dict(source.func)
        for loop in loops_around(site.model, site.node)
        for target, source in targets(loop)
        if not names.isdisjoint(names_in(target))
    )


def _is_state_dict(method: ast.expr) -> bool:
    """True for `model.state_dict().items`."""
    return isinstance(method, ast.Attribute) and last_name(method.value) == "state_dict"


def carries_numbers(site: Site) -> bool:
    """True if the tensor that a call makes of numbers only carries them to a collective: `all_reduce(totals)`.

    Not if a branch decides about the collective: without other processes the numbers need not leave the CPU.
    """
    if not isinstance(site, CallSite):
        return False
    outer = site.model.parent(site.node)
    if isinstance(outer, ast.Call):
        return site.node in outer.args[:1] and last_name(outer) in _COLLECTIVES
    target = _target(site)
    if not isinstance(outer, ast.Assign) or not isinstance(target, ast.Name):
        return False
    block = block_in(site.model.parent(outer), outer)
    after = block[(place_in(block, outer) or 0) + 1 :][:_MOST_STATEMENTS]
    return any(target.id in _carried(statement) for statement in after if isinstance(statement, _SIMPLE))


_COLLECTIVES = frozenset("all_reduce broadcast reduce all_gather gather all_gather_into_tensor".split())
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)
_MOST_STATEMENTS = 12
"""Statements after a tensor is made that are searched for collectives."""


def _carried(statement: ast.stmt) -> set[str]:
    """The names that a statement passes to collectives."""
    calls = (node for node in walk(statement) if isinstance(node, ast.Call) and last_name(node) in _COLLECTIVES)
    given = (each for call in calls for each in (*call.args[:2], *(keyword.value for keyword in call.keywords)))
    return {each.id for each in given if isinstance(each, ast.Name)}


def copies_array(site: Site) -> bool:
    """True if a call moves an array of NumPy to the GPU that its expression makes a tensor.

    Not if an object keeps the tensor, nor if the array is the same in each iteration of a loop.
    """
    if not isinstance(site, CallSite) or not _comes_from_array(site) or isinstance(_target(site), ast.Attribute):
        return False
    loop = next(loops_around(site.model, site.node), None)
    return loop is None or not names_in(site.node).isdisjoint(_bound_in(site.model, loop))


def _comes_from_array(site: CallSite) -> bool:
    """True for `torch.from_numpy(x)[None].cuda()`."""
    inner: ast.expr = site.node
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        if site.model.target(inner) == "torch.from_numpy":
            return True
        inner = inner.func.value
        while isinstance(inner, ast.Subscript):
            inner = inner.value
    return False


def _becomes_array(site: CallSite) -> bool:
    """True for `x.cpu()` in `x.cpu().float().numpy()`, and for the whole of it."""
    node: ast.AST | None = site.node
    while isinstance(node, ast.Call):
        if last_name(node) == "numpy":
            return True
        outer = site.model.parent(node)
        node = site.model.parent(outer) if isinstance(outer, ast.Attribute) else None
    return False


def _target(site: CallSite) -> ast.expr | None:
    """The target of the assignment whose value a call is part of."""
    for outer in site.model.ancestors(site.node):
        if isinstance(outer, ast.stmt):
            return outer.targets[0] if isinstance(outer, ast.Assign) else None
    return None


@once_per_node
def _bound_in(model: Model, loop: ast.AST) -> frozenset[str]:
    """The names that a loop binds in each iteration."""
    return frozenset(node.id for node in walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
