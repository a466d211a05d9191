"""Decides if no program of a project reaches a function, if no code is known to call it, or none of other projects."""

from __future__ import annotations

import ast
import re

from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.purpose.evaluations import is_in_model, is_one_of_many
from perflint.semantics.structure import FunctionNode, names_in


def is_dead(model: Model, node: ast.AST) -> bool:
    """True if a place is in a function that no program of the project reaches, nor a user of its packages."""
    function = model.function(node)
    return function is not None and not model.module.serves_tests and not _is_live(model, function)


def is_dead_line(model: Model, line: int) -> bool:
    """True if `is_dead` holds for the code of a line, for rules that look at a whole file."""
    functions: list[FunctionNode] = [*model.nodes(ast.FunctionDef), *model.nodes(ast.AsyncFunctionDef)]
    around = [node for node in functions if node.lineno <= line <= (node.end_lineno or node.lineno)]
    return bool(around) and not model.module.serves_tests and not _is_live(model, around[0])


@once_per_node
def _is_live(model: Model, function: FunctionNode) -> bool:
    info = model.module.defined_by(function)
    while info is not None and info.outer is not None:
        info = info.outer
    return info is None or (not _is_replaced(model, info.node) and model.is_live(info.qualname))


def _is_replaced(model: Model, function: FunctionNode) -> bool:
    """True if the same block defines the same name again before it uses it, so that no code can call the first one.

    Decorators may keep the first one: `@overload`, `@property`, `@dispatch.register`.
    """
    block = getattr(model.parent(function), "body", None)
    if isinstance(function, ast.Lambda) or not isinstance(block, list) or function not in block:
        return False
    after = block[block.index(function) + 1 :]
    again = (each for each in after if isinstance(each, _DEFINITIONS) and each.name == function.name)
    second = next(again, None)
    if second is None or function.decorator_list or second.decorator_list:
        return False
    between = (part for each in after[: after.index(second)] for part in _run_at_once(each))
    return not any(function.name in names_in(part) for part in between)


def _run_at_once(statement: ast.stmt) -> list[ast.AST]:
    """The parts of a statement that run with its block; the bodies of functions run when these are called."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [*statement.decorator_list, statement.args]
    if isinstance(statement, ast.ClassDef):
        inner = [part for each in statement.body for part in _run_at_once(each)]
        return [*statement.decorator_list, *statement.bases, *inner]
    return [statement]


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def serves_project(model: Model, node: ast.AST) -> bool:
    """True for a function, but not one made inside another, of a file that its project offers to no other.

    A file by itself may belong to another project.
    """
    info = model.module.defined_by(model.function(node))
    return info is not None and info.outer is None and is_one_of_many(model) and not model.is_offered


def is_unreached(model: Model, node: ast.AST) -> bool:
    """True if no other file is known to lead to the function around a place, and no user of a package calls it.

    Not in a model, whose methods are called in many ways, and not in a function inside another, which may be a hook.
    """
    function = model.function(node)
    return function is not None and not is_in_model(model, node) and _is_unreached(model, function)


@once_per_node
def _is_unreached(model: Model, function: FunctionNode) -> bool:
    info = model.module.defined_by(function)
    if info is None or info.outer is not None or not model.serves_project or model.chain(info) is not None:
        return False
    return not info.owner or not _is_read(model, info.name)


def _is_read(model: Model, method: str) -> bool:
    """True if any file reads an attribute with the name of a method: its object may be one of the class."""
    pattern = re.compile(rf"\.{re.escape(method)}\b")
    return any(model.view.finds(file.path, pattern) for file in model.view.mentioning(method))
