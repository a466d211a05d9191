"""Definitions in another order, and decorators as calls."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from itertools import pairwise

from tests.forms.names import names, parameters
from tests.forms.program import Program, marked_like

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions_reversed(program: Program) -> None:
    """Functions, classes and methods in reverse order"""
    _reorder(program, lambda found: found.reverse())


def definitions_shuffled(program: Program) -> None:
    """Functions, classes and methods in another order"""
    seed = random.Random(ast.unparse(program.main))
    _reorder(program, seed.shuffle)


def _reorder(program: Program, change: Callable[[list[ast.stmt]], None]) -> None:
    for holder in [each for each in ast.walk(program.main) if isinstance(each, (ast.Module, ast.ClassDef))]:
        start = 0
        for end in range(len(holder.body) + 1):
            if end < len(holder.body) and isinstance(holder.body[end], Definition):
                continue
            holder.body[start:end] = _sorted(holder.body[start:end], change)
            start = end + 1


def _sorted(run: list[ast.stmt], change: Callable[[list[ast.stmt]], None]) -> list[ast.stmt]:
    """Neighbouring definitions in a new order, each behind those that run when it is defined."""
    defined = [each.name for each in run if isinstance(each, Definition)]
    if len(set(defined)) < len(defined):
        return run
    order = list(run)
    change(order)
    done: list[ast.stmt] = []

    def put(statement: ast.stmt) -> None:
        needed = _needs(statement)
        for other in run:
            if isinstance(other, Definition) and other.name in needed and other is not statement and other not in done:
                put(other)
        if statement not in done:
            done.append(statement)

    for each in order:
        put(each)
    return done


def _needs(statement: ast.stmt) -> set[str]:
    """The names that a definition reads when it runs; those of a function that it calls then, too, are not followed."""
    assert isinstance(statement, Definition)
    if isinstance(statement, ast.ClassDef):
        return names([statement]).read
    given = statement.args
    annotated = [each.annotation for each in parameters(given) if each.annotation]
    parts = [*statement.decorator_list, *given.defaults, *(each for each in given.kw_defaults if each), *annotated]
    return names([*parts, *([statement.returns] if statement.returns else [])]).read


def decorators_as_calls(program: Program) -> None:
    """`@torch.no_grad()` above `f` as `f = torch.no_grad()(f)` behind it"""
    for holder in [node for node in ast.walk(program.main) if isinstance(getattr(node, "body", None), list)]:
        for index, statement in reversed(list(enumerate(holder.body))):  # type: ignore[attr-defined]
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and statement.decorator_list:
                if any(
                    isinstance(each, ast.Attribute) and each.attr in ("setter", "getter")
                    for each in statement.decorator_list
                ):
                    continue
                value: ast.expr = ast.Name(statement.name, ast.Load())
                for decorator in reversed(statement.decorator_list):
                    value = marked_like(ast.Call(decorator, [value], []), decorator)
                statement.decorator_list = []
                holder.body.insert(index + 1, ast.Assign([ast.Name(statement.name, ast.Store())], value))  # type: ignore[attr-defined]


def calls_as_decorators(program: Program) -> None:
    """`f = torch.compile(f)` behind `f` as `@torch.compile` above it"""
    for holder in [node for node in ast.walk(program.main) if isinstance(getattr(node, "body", None), list)]:
        body: list[ast.stmt] = holder.body  # type: ignore[attr-defined]
        for statement, following in reversed(list(pairwise(body))):
            decorator = _decorator(statement, following)
            if decorator is not None and isinstance(statement, Definition):
                statement.decorator_list.insert(0, decorator)
                body.remove(following)


def _decorator(statement: ast.stmt, following: ast.stmt) -> ast.expr | None:
    if not isinstance(statement, Definition) or not isinstance(following, ast.Assign):
        return None
    value = following.value
    if ast.unparse(following.targets[0]) != statement.name or not isinstance(value, ast.Call) or value.keywords:
        return None
    if [ast.unparse(each) for each in value.args] != [statement.name]:
        return None
    return marked_like(value.func, value)
