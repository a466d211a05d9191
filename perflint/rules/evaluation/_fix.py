"""Fixes that turn autograd off."""

from __future__ import annotations

import ast

from perflint.findings import Edit, Fix, Safety, Span
from perflint.rules.evaluation._loops import Region
from perflint.rules.evaluation._scopes import Survey, last_name
from perflint.source.concrete import code, cst

_COMPILED = frozenset({"compile", "script", "export", "script_method"})


def decorate(region: Region, context: str) -> Fix | None:
    """Put `@torch.<context>()` above a function that only evaluates.

    None for loops inside other code, for coroutines (a decorator would end before they
    run) and for functions that a compiler reads.
    """
    function = region.scope.node
    if region.loop is not None or not isinstance(function, ast.FunctionDef):
        return None
    if any(last_name(decorator) in _COMPILED for decorator in function.decorator_list):
        return None
    spelling, imports = torch_name(region.survey, context)
    source = region.survey.model.source
    column = source.column(function.lineno, function.col_offset)
    line = source.lines[function.lineno - 1]
    decorator = cst.Decorator(cst.parse_expression(f"{spelling}()"))
    text = code(decorator).rstrip("\n") + ("\r\n" if line.endswith("\r\n") else "\n") + line[: column - 1]
    place = Span(function.lineno, column, function.lineno, column)
    return Fix(f"decorate `{function.name}` with `@{spelling}()`", Safety.UNSAFE, (Edit(place, text),), imports)


def torch_name(survey: Survey, name: str) -> tuple[str, tuple[str, ...]]:
    """How the file spells `torch.<name>`, and the import that this needs, if any."""
    spelling = ""
    for statement in survey.model.source.tree.body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.name == "torch":
                    spelling = spelling or f"{alias.asname or 'torch'}.{name}"
        elif isinstance(statement, ast.ImportFrom) and statement.module == "torch" and statement.level == 0:
            for alias in statement.names:
                if alias.name == name:
                    return alias.asname or name, ()
    return (spelling, ()) if spelling else (f"torch.{name}", ("import torch",))
