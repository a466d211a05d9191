"""Decides if code reads or writes files, beside which a wait takes little time."""

from __future__ import annotations

import ast

from perflint.semantics.around import loops_around
from perflint.semantics.binders import LOOPS
from perflint.semantics.facts import conventions
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.purpose.evaluations import is_in_model, is_one_of_many, updates_weights
from perflint.semantics.structure import children, last_name, path_of, walk
from perflint.semantics.values import Function


@once_per_node
def reads_file(model: Model, loop: ast.AST) -> bool:
    """True if a loop calls a function that reads a file, beside its inner loops."""
    waiting: list[ast.AST] = [*getattr(loop, "body", ())] if isinstance(loop, LOOPS) else []
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


def writes_results(model: Model, node: ast.AST) -> bool:
    """True if the loop around a node, or its function if it is in none, writes results to a file.

    Only in a file of a project that updates no weights. Not in a model, nor in code that a package offers to others.
    """
    if updates_weights(model) or model.is_offered or is_in_model(model, node):
        return False
    around = next((loop for loop in loops_around(model, node) if isinstance(loop, LOOPS)), None) or model.function(node)
    return around is not None and is_one_of_many(model) and _writes(model, around)


@once_per_node
def _writes(model: Model, around: ast.AST) -> bool:
    return any(isinstance(node, ast.Call) and conventions.makes_bytes(last_name(node)) for node in walk(around))
