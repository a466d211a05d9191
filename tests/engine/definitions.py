"""The same program with its functions in another order."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

Order = Callable[[list[int]], list[int]]
"""Gives some numbers in another order."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
Line = tuple[int, str]
"""A line with its number in the text of before."""


def reordered(text: str, order: Order) -> tuple[str, tuple[int, ...]]:
    """A text with neighbouring functions, and methods, in another order; and the number of each line in the first text.

    Functions stay where their order may count: where two have one name, or a decorator, a default or an annotation
    names another one.
    """
    tree, ending = ast.parse(text), "" if text.endswith("\n") else "\n"
    lines = list(enumerate((text + ending).splitlines(keepends=True), 1))
    for body in _bodies(tree):
        for functions in _neighbours(body):
            if _may_move(functions):
                lines = _moved(lines, functions, order)
    return "".join(line for _, line in lines), tuple(number for number, _ in lines)


def _bodies(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """The bodies of all classes, the inner ones first, and that of the module."""
    yield from (node.body for node in reversed(list(ast.walk(tree))) if isinstance(node, ast.ClassDef))
    yield tree.body


def _neighbours(body: Sequence[ast.stmt]) -> Iterator[list[Function]]:
    """The functions that follow each other, two or more."""
    found: list[Function] = []
    for statement in [*body, ast.Pass()]:
        if isinstance(statement, Function):
            found.append(statement)
            continue
        if len(found) > 1:
            yield found
        found = []


def _may_move(functions: list[Function]) -> bool:
    names = [function.name for function in functions]
    read = {node.id for function in functions for part in _run_at_once(function) for node in ast.walk(part)
            if isinstance(node, ast.Name)}  # fmt: skip
    return len(set(names)) == len(names) and read.isdisjoint(names)


def _run_at_once(function: Function) -> Iterator[ast.AST]:
    """What runs when a function is defined."""
    yield from function.decorator_list
    yield function.args
    if function.returns is not None:
        yield function.returns


def _moved(lines: list[Line], functions: list[Function], order: Order) -> list[Line]:
    """The lines with some functions in another order; each takes along the comments above it.

    Inner functions have moved within these lines already, so that the first and the last line are still the same.
    """
    first = functions[0]
    start = min(each.lineno for each in (first, *first.decorator_list)) - 1
    while start and lines[start - 1][1].lstrip().startswith("#"):
        start -= 1
    ends = [start, *(function.end_lineno or 0 for function in functions)]
    parts = [lines[begin:end] for begin, end in pairwise(ends)]
    now = [line for number in order(list(range(len(parts)))) for line in parts[number]]
    return [*lines[:start], *now, *lines[ends[-1] :]]
