"""Expressions that may be evaluated in front of their statement."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.structure import walk

LATER = (ast.Lambda, ast.GeneratorExp, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""Code that may run after names got other values."""
_SOMETIMES = (ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.Await, ast.Yield, ast.YieldFrom)


def always_runs(model: Model, node: ast.expr, statement: ast.stmt) -> bool:
    """True if an expression is evaluated whenever its statement runs."""
    for outer in model.ancestors(node):
        if outer is statement:
            return True
        if isinstance(outer, (*LATER, *_SOMETIMES)) or (isinstance(outer, ast.Compare) and len(outer.ops) > 1):
            return False
    return False


def starts_line(model: Model, statement: ast.stmt) -> bool:
    """True if nothing but white space stands in front of a statement on its line."""
    line = model.source.lines[statement.lineno - 1]
    return line[: len(line) - len(line.lstrip())] == line[: statement.col_offset]


def names_of(node: ast.expr) -> Iterator[ast.Name]:
    """The plain names in an expression."""
    return (each for each in walk(node) if isinstance(each, ast.Name))


@once
def words(model: Model) -> frozenset[str]:
    """The names that a file uses, binds or takes as parameters."""
    names = {each.id for each in model.nodes(ast.Name)} | {each.arg for each in model.nodes(ast.arg)}
    return frozenset(names | {each.name for each in model.nodes(ast.FunctionDef)})
