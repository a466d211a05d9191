"""Which module's output goes straight, and only, into which other module, as `forward` has it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.frozen import dataclass, field
from perflint.semantics.around import is_inside, statement_of
from perflint.semantics.model import Model
from perflint.semantics.structure import walk

Method = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Attribute:
    """The uses of `self.<name>` in a class."""

    assigned: list[ast.expr | None] = field(default_factory=list)
    """The values; None for one that is not a plain assignment's."""
    calls: list[ast.Call] = field(default_factory=list)
    """The calls `self.<name>(…)`."""
    escapes: bool = False
    """True if the object itself goes elsewhere: into a list, another call, an index."""


def attributes(model: Model, definition: ast.ClassDef) -> dict[str, Attribute]:
    """The attributes of `self` in a class's methods, by name."""
    found: dict[str, Attribute] = {}
    for method in _methods(definition):
        own = _own_name(method)
        for node in walk(method):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own:
                _note(model, found.setdefault(node.attr, Attribute()), node)
    return found


def _methods(definition: ast.ClassDef) -> Iterator[Method]:
    for statement in definition.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield statement


def _own_name(method: Method) -> str:
    positional = [*method.args.posonlyargs, *method.args.args]
    return positional[0].arg if positional else ""


def _note(model: Model, attribute: Attribute, node: ast.Attribute) -> None:
    parent = model.parent(node)
    if not isinstance(node.ctx, ast.Load):
        alone = isinstance(parent, ast.Assign) and parent.targets == [node]
        attribute.assigned.append(parent.value if isinstance(parent, ast.Assign) and alone else None)
    elif isinstance(parent, ast.Call) and parent.func is node:
        attribute.calls.append(parent)
    elif not isinstance(parent, ast.Attribute):
        attribute.escapes = True


def handed_over(model: Model, definition: ast.ClassDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Pairs of constructor expressions: all that the first object puts out goes into the second, and nowhere else.

    Both are attributes of `self`, assigned once in the class; the first is called once.
    """
    known = attributes(model, definition)
    for second in known.values():
        if len(second.assigned) != 1 or second.assigned[0] is None or second.escapes:
            continue
        for call in second.calls:
            giver = _giver(model, call)
            for first in known.values():
                if first.calls == [giver] and len(first.assigned) == 1 and not first.escapes:
                    if first.assigned[0] is not None:
                        yield first.assigned[0], second.assigned[0]


def _giver(model: Model, taker: ast.Call) -> ast.Call | None:
    """The call whose result is the only argument of another call, and is used for nothing else."""
    if len(taker.args) != 1 or taker.keywords:
        return None
    return source_of(model, taker, taker.args[0])


def source_of(model: Model, taker: ast.Call, argument: ast.expr) -> ast.Call | None:
    """The call whose result an expression in `taker` is; None if the result has other uses."""
    if isinstance(argument, ast.Call):
        return argument
    if not isinstance(argument, ast.Name):
        return None
    statement = statement_of(model, taker)
    if statement is None or not _always_runs(model, taker, statement):
        return None
    definition = _definition(model, statement, argument.id)
    if definition is None or not _is_last_use(model, definition, statement, argument):
        return None
    return definition.value if isinstance(definition.value, ast.Call) else None


def _always_runs(model: Model, node: ast.AST, statement: ast.stmt) -> bool:
    """True if a statement cannot run without the expression in it: no condition, no deferral."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)):
        return False
    for around in model.ancestors(node):
        if around is statement:
            return True
        if isinstance(around, (ast.IfExp, ast.BoolOp, ast.Lambda, ast.comprehension, ast.ListComp, ast.GeneratorExp)):
            return False
    return False


def _definition(model: Model, statement: ast.stmt, name: str) -> ast.Assign | None:
    """The assignment `name = f(…)` above a statement in its block that nothing between touches."""
    for before in reversed(_block(model, statement)[0]):
        if isinstance(before, ast.Assign) and isinstance(before.value, ast.Call):
            (target, *others) = before.targets
            if not others and isinstance(target, ast.Name) and target.id == name:
                return before
        if _mentions(before, name):
            return None
    return None


def _block(model: Model, statement: ast.stmt) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The statements above and below one in its block."""
    parent = model.parent(statement)
    for block in (getattr(parent, name, None) for name in ("body", "orelse", "finalbody")):
        if isinstance(block, list) and statement in block:
            index = block.index(statement)
            return block[:index], block[index + 1 :]
    return [], []


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in walk(node))


def _is_last_use(model: Model, definition: ast.Assign, statement: ast.stmt, use: ast.Name) -> bool:
    """True if the value that a definition gives to a name is read by one use alone."""
    loads = [
        each
        for each in walk(statement)
        if isinstance(each, ast.Name) and each.id == use.id and isinstance(each.ctx, ast.Load)
    ]
    if loads != [use]:
        return False
    if isinstance(statement, ast.Return):
        return True
    if isinstance(statement, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == use.id for target in statement.targets
    ):
        return True
    return _is_dead_after(model, definition, statement, use.id)


def _is_dead_after(model: Model, definition: ast.Assign, statement: ast.stmt, name: str) -> bool:
    """True if no later read of a name can see its value after a statement."""
    function = model.function(statement)
    if function is None or model.symbols.declares(function, name):
        return False
    looped = any(isinstance(around, (ast.For, ast.AsyncFor, ast.While)) for around in model.ancestors(statement))
    end = (statement.end_lineno or statement.lineno, statement.end_col_offset or 0)
    for node in walk(function):
        if not isinstance(node, ast.Name) or node.id != name or not isinstance(node.ctx, ast.Load):
            continue
        if looped and not is_inside(model, node, definition) and not is_inside(model, node, statement):
            return False
        if (node.lineno, node.col_offset) >= end:
            return False
    return True
