"""Which module's output goes straight, and only, into which other module, as `forward` has it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.frozen import dataclass, field
from perflint.rules._memory.flows import behind
from perflint.rules._statements import always_runs, block_of
from perflint.semantics.around import statement_of
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
    """The call whose result an expression in `taker` always is; None if the result has other uses."""
    made = behind(model, argument)
    if not isinstance(made, ast.Call) or made is argument:
        return argument if isinstance(argument, ast.Call) else None
    before, after = statement_of(model, made), statement_of(model, taker)
    if before is None or after is None or before not in block_of(model, after):
        return None
    is_simple = isinstance(after, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr))
    return made if is_simple and always_runs(model, taker, after) else None
