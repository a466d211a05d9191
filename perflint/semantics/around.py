"""The place of an expression: the nodes and the loops around it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Heat
from perflint.semantics.binders import COMPREHENSIONS, LOOPS
from perflint.semantics.inferred import Inferred
from perflint.semantics.sites import Site
from perflint.semantics.structure import stands_in

Loop = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def inside(model: Inferred, node: ast.AST) -> Iterator[ast.AST]:
    """The nodes around a node, innermost first, up to and without its function, class or module."""
    for outer in model.ancestors(node):
        if isinstance(outer, (*_FUNCTIONS, ast.ClassDef, ast.Module)):
            return
        yield outer


def is_inside(model: Inferred, node: ast.AST, outer: ast.AST) -> bool:
    """True if a node stands in another."""
    return any(each is outer for each in model.ancestors(node))


def statement_of(model: Inferred, node: ast.AST) -> ast.stmt | None:
    """The innermost statement that a node belongs to."""
    if isinstance(node, ast.stmt):
        return node
    return next((outer for outer in model.ancestors(node) if isinstance(outer, ast.stmt)), None)


def class_around(model: Inferred, node: ast.AST) -> ast.ClassDef | None:
    """The innermost class around a node."""
    return next((outer for outer in model.ancestors(node) if isinstance(outer, ast.ClassDef)), None)


def loops_around(model: Inferred, node: ast.AST) -> Iterator[Loop]:
    """The loops and comprehensions that run a node again and again, innermost first."""
    below, inner = node, node
    for outer in inside(model, node):
        if isinstance(outer, LOOPS):
            if stands_in(outer.body, inner) or (isinstance(outer, ast.While) and inner is outer.test):
                yield outer
        elif isinstance(outer, COMPREHENSIONS):
            # The first iterable of a comprehension is evaluated once.
            first = outer.generators[0]
            if inner is not first or below is not first.iter:
                yield outer
        below, inner = inner, outer


def repeats(site: Site) -> bool:
    """True if a place runs often, or stands in a loop."""
    return site.heat is Heat.HOT or next(loops_around(site.model, site.node), None) is not None


_CELL = re.compile(r"#\s*~*%%")
"""The line before a cell, in the text of a notebook and in scripts of cells."""


def parts_cells(model: Inferred, first: ast.AST, last: ast.AST) -> bool:
    """True if a new cell begins between two statements of the top level: cells may be run again, in any order."""
    begin, end = getattr(first, "lineno", 0), getattr(last, "end_lineno", 0)
    return model.function(first) is None and any(_CELL.match(line) for line in model.source.lines[begin:end])


def targets(loop: Loop) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets and iterables of a loop, in pairs; none for `while`."""
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        yield loop.target, loop.iter
    elif not isinstance(loop, ast.While):
        for generator in loop.generators:
            yield generator.target, generator.iter
