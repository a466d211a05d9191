"""Fixes that turn autograd off."""

from __future__ import annotations

import ast

from perflint.findings import Edit, Fix, Safety, Span
from perflint.fixes.edits import in_newlines_of, indentation, insert
from perflint.rules._since import INFERENCE_MODE
from perflint.rules.evaluation._gradients import carries
from perflint.rules.evaluation._loops import Region
from perflint.rules.evaluation._modules import modules
from perflint.rules.evaluation._scopes import Survey
from perflint.semantics.structure import last_name, walk
from perflint.source.concrete import code, cst
from perflint.source.text import Source

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
    since = INFERENCE_MODE if context == "inference_mode" else None
    edits = (Edit(place, text),)
    return Fix(f"decorate `{function.name}` with `@{spelling}()`", Safety.RISKY, edits, imports, since=since)


def under_no_grad(survey: Survey, call: ast.Call) -> Fix | None:
    """Put the statement around a run under `with torch.no_grad():`.

    None where something else in it may carry a gradient, or where it is no plain statement on
    lines of its own.
    """
    source, inner = survey.model.source, call
    around: ast.AST = call
    for around in survey.model.ancestors(call):
        if isinstance(around, ast.stmt):
            break
        beside = [child for child in ast.iter_child_nodes(around) if child is not inner and isinstance(child, ast.expr)]
        if any(carries(survey, modules(survey), child) for child in beside):
            return None
        inner = around  # type: ignore[assignment]
    if not isinstance(around, (ast.Assign, ast.AnnAssign, ast.Return)) or inner is not around.value:
        return None
    edits = _indented(source, around)
    if edits is None:
        return None
    spelling, imports = torch_name(survey, "no_grad")
    first, *rest = edits
    before = indentation(source, around.lineno)
    opening = in_newlines_of(source, around.lineno, f"with {spelling}():\n{before}")
    text = f"put it under `with {spelling}():`"
    return Fix(text, Safety.RISKY, (Edit(first.span, opening + first.text), *rest), imports)


def _indented(source: Source, statement: ast.stmt) -> list[Edit] | None:
    """Edits that indent a statement by one step; None where text in it would change, or it shares its line."""
    column = source.column(statement.lineno, statement.col_offset)
    before = indentation(source, statement.lineno)
    if len(before) != column - 1 or ";" in source.lines[(statement.end_lineno or 0) - 1]:
        return None
    for node in walk(statement):
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno != node.lineno:
            return None
    step = "\t" if before.endswith("\t") else "    "
    lines = range(statement.lineno + 1, (statement.end_lineno or statement.lineno) + 1)
    return [insert(statement.lineno, column, step), *(insert(line, 1, step) for line in lines)]


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
