"""Beliefs about one line with their reasons, and the decisions of the rules."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from contextlib import closing
from itertools import pairwise

from perflint.config.errors import ConfigurationError
from perflint.config.settings import Settings
from perflint.engine.decisions import Decision, decisions
from perflint.findings import Heat, Problem, Span
from perflint.frozen import dataclass, field
from perflint.semantics.depth import deep_stack
from perflint.semantics.explain.describe import describe
from perflint.semantics.explain.reasons import Reasons, Step
from perflint.semantics.heat.reasons import HeatReasons
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.structure import path_of
from perflint.semantics.values import (
    UNKNOWN,
    Array,
    Class,
    Instance,
    Mapping,
    Name,
    Partial,
    Super,
    Unknown,
    Value,
    scalar_type,
)
from perflint.source.text import Source

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class _Place:
    """Something to explain. `statement` is the import that an alias belongs to."""

    node: ast.expr | ast.arg | ast.alias
    span: Span
    statement: ast.Import | ast.ImportFrom | None = None


@dataclass(frozen=True, slots=True)
class Belief:
    """The value of an expression, or of the same expression at several places of a line, with its reasons."""

    text: str
    spans: tuple[Span, ...]
    value: Value
    words: str
    steps: tuple[Step, ...]


@dataclass(slots=True)
class Explanation:
    """The beliefs about a line and the decisions of rules there. `column` is None for the whole line."""

    source: Source
    line: int
    column: int | None
    heat: Heat
    heat_steps: tuple[Step, ...]
    is_body: bool
    """True if the heat is that of the body of the statement that the line begins."""
    beliefs: list[Belief] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """Rules that crashed."""


def explain(source: Source, project: Project, settings: Settings, line: int, column: int | None) -> Explanation:
    """Explain a line, or the expressions at a column of it.

    Raises ConfigurationError for a place without code, SyntaxError and ValueError as `ast.parse` does.
    """
    _check_position(source, line, column)
    with deep_stack(), closing(Model(source, project)) as model:
        return _explain(model, settings, line, column)


def _explain(model: Model, settings: Settings, line: int, column: int | None) -> Explanation:
    statement = _statement_at(model, line)
    places = _places(model, line)
    asked = places if column is None else [place for place in places if place.span.covers(line, column)]
    if statement is None or (not asked and (column is not None or _first_line(statement) != line)):
        raise _nothing(model, line, column, statement, places)
    told = [place for place in asked if _is_worth_telling(model, place.node)]
    if column is not None:
        # The expression itself is always explained, then the ones around it.
        told = [place for place in reversed(asked) if place in told or place is asked[-1]]
    heated, is_body = _heated(statement, asked[-1] if column is not None else None)
    steps = tuple(HeatReasons(model).of(heated))
    explanation = Explanation(model.source, line, column, model.heat(heated), steps, is_body)
    reasons = Reasons(model)
    nodes = {place.node for place in told}
    explanation.beliefs = _merged(_belief(model, reasons, place, nodes) for place in told)
    explanation.decisions = decisions(model, settings, line, column, explanation.problems)
    return explanation


# Positions


def _check_position(source: Source, line: int, column: int | None) -> None:
    last = len(source.lines)
    if line > last:
        help = f"its last line is {last}" if last else "it is empty"
        raise ConfigurationError(f"{source.path} has no line {line}", help)
    width = len(source.lines[line - 1].rstrip("\r\n"))
    if column is not None and column > width:
        raise ConfigurationError(f"line {line} of {source.path} has no column {column}", f"its last column is {width}")


def _statement_at(model: Model, line: int) -> ast.stmt | None:
    """The innermost statement that the line belongs to; of a compound one, its header."""
    found: ast.stmt | None = None
    for node in model.everything():
        if isinstance(node, ast.stmt) and _first_line(node) <= line <= _last_line(node):
            found = node
    return found


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _last_line(node: ast.stmt) -> int:
    """The last line, or that of the header of a compound statement."""
    body: list[ast.stmt] = getattr(node, "body", [])
    cases: list[ast.match_case] = getattr(node, "cases", [])
    first = _first_line(body[0]) if body else cases[0].pattern.lineno if cases else None
    return node.end_lineno or node.lineno if first is None else max(node.lineno, first - 1)


def _nothing(
    model: Model, line: int, column: int | None, statement: ast.stmt | None, places: list[_Place]
) -> ConfigurationError:
    place = f"line {line} of {model.source.path}"
    text = model.source.lines[line - 1].strip()
    if column is not None:
        columns = sorted({place.span.column for place in places})
        help = f"expressions begin at columns {', '.join(map(str, columns))}" if columns else None
        return ConfigurationError(f"no expression at column {column} of {place}", help)
    if statement is not None:
        help = f"its statement begins on line {statement.lineno}"
        return ConfigurationError(f"no expression begins on {place}", help)
    what = "is empty" if not text else "is a comment" if text.startswith("#") else "holds no expression"
    after = [node.lineno for node in model.everything() if isinstance(node, ast.stmt) and node.lineno > line]
    return ConfigurationError(f"{place} {what}", f"the next statement is on line {min(after)}" if after else None)


# Expressions


def _places(model: Model, line: int) -> list[_Place]:
    """The expressions that begin in a line, by position, outer ones first."""
    span = model.source.span
    found: list[_Place] = []
    for node in model.everything():
        if isinstance(node, (ast.expr, ast.arg)) and node.lineno == line:
            found.append(_Place(node, span(node)))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found += [
                _Place(alias, span(alias), node) for alias in node.names if alias.lineno == line and alias.name != "*"
            ]
    return sorted(found, key=lambda place: (place.span.column, -place.span.end_line, -place.span.end_column))


_PLAIN_TO_SEE = (
    *(ast.Constant, ast.Slice, ast.JoinedStr, ast.FormattedValue, ast.Starred, ast.Lambda),
    *(ast.Tuple, ast.List, ast.Dict, ast.Set),
)
_COMPUTED = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare)


def _is_worth_telling(model: Model, node: ast.AST) -> bool:
    """True if an expression says something that those around it and inside it do not."""
    if not isinstance(node, ast.expr):
        return True
    if isinstance(node, _PLAIN_TO_SEE) or _is_annotation(model, node):
        return False
    value, parent = model.value(node), model.parent(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        return isinstance(value, (Instance, Partial))
    if isinstance(value, Name) and value.receiver is None and value.name.startswith(("builtins.", "torch.")):
        return False
    if isinstance(parent, ast.Attribute):
        if path_of(node) in ("self", "cls") or isinstance(value, (Name, Class, Super)):
            return False
        is_callee = model.value(parent) != value and isinstance(model.parent(parent), ast.Call)
        return is_callee or not isinstance(value, (Instance, Mapping, Array))
    if isinstance(node, ast.Call) and model.target(node):
        # Leave out values that are not read, and `float("inf")`.
        is_number = all(scalar_type(member) for member in value.members)
        return not isinstance(parent, ast.Expr) and not (is_number and _holds_only_constants(node))
    if isinstance(node, _COMPUTED):
        return not all(scalar_type(member) for member in value.members)
    return True


def _holds_only_constants(node: ast.Call) -> bool:
    return all(isinstance(arg, ast.Constant) for arg in node.args) and isinstance(node.func, ast.Name)


def _is_annotation(model: Model, node: ast.AST) -> bool:
    around = pairwise((node, *model.ancestors(node)))
    return any(
        inner in (getattr(outer, "annotation", None), getattr(outer, "returns", None)) for inner, outer in around
    )


def _belief(model: Model, reasons: Reasons, place: _Place, told: Collection[ast.AST]) -> Belief:
    node, span = place.node, place.span
    steps: list[Step] = []
    if isinstance(node, ast.alias):
        name = node.asname or node.name
        value = reasons.imported(place.statement, node) if place.statement is not None else UNKNOWN
        if isinstance(value, Name) and not value.name.startswith("torch"):
            steps = [Step("outside of the project")]
        elif isinstance(value, Unknown):
            steps = [Step("perflint does not find it where it is to come from")]
    elif isinstance(node, ast.arg):
        name, function = node.arg, reasons.function_of(node)
        value = UNKNOWN if function is None else model.parameters(function)[1].get(node.arg, UNKNOWN)
        steps = [] if function is None else reasons.of_parameter(function, node)
        span = Span(span.line, span.column, span.line, span.column + len(name))
    else:
        name, value = model.source.segment(span), model.value(node)
        steps = reasons.of(node, told) if model.is_evaluated(node) else [Step("perflint does not evaluate it")]
    words = describe(value, model.module.name)
    if isinstance(place.statement, ast.Import):
        words = f"module {words}"
    return Belief(name, (span,), value, words, tuple(steps))


def _merged(beliefs: Iterable[Belief]) -> list[Belief]:
    """The beliefs, each once."""
    found: dict[tuple[str, str], Belief] = {}
    for belief in beliefs:
        key = (belief.text, belief.words)
        known = found.get(key)
        if known is not None:
            steps = max(known.steps, belief.steps, key=len)
            belief = Belief(belief.text, (*known.spans, *belief.spans), belief.value, belief.words, steps)
        found[key] = belief
    return list(found.values())


def _heated(statement: ast.stmt, asked: _Place | None) -> tuple[ast.AST, bool]:
    """The node whose heat is that of the line, and whether it is the body of what the line begins."""
    if asked is not None and isinstance(asked.node, ast.expr):
        return asked.node, False
    if isinstance(statement, _DEFINITIONS) and not isinstance(statement, ast.ClassDef):
        return statement.body[0], True
    if isinstance(statement, ast.While):
        return statement.test, False
    return statement, False
