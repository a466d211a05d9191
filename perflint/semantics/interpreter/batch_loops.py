"""Loops over batches, and batches of `next`: the code moves the elements to a device and runs a model on them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.semantics.facts import conventions
from perflint.semantics.lattice import union
from perflint.semantics.structure import FunctionNode, Structure, last_name, names_in, path_of, root_of
from perflint.semantics.values import STR, Device, Evidence, Sequence, Tensor, Value

Moves = dict[ast.AST, set[str]]
"""The names that loops and functions move to a device and run a model on."""

_KEYS = Sequence("list", STR)
_BATCH = Sequence("batch", Tensor(Device.CPU, evidence=Evidence.CONVENTION))


def element(structure: Structure, loop: ast.For | ast.AsyncFor, value: Value) -> Value:
    """The element of a loop: a batch on the CPU where nothing else is known and the body says so."""
    moved = _moved_in(structure, loop)
    return value if moved is None else _element(loop.target, value, moved)


def iterated(loop: ast.AST, target: ast.expr, iterable: ast.expr, value: Value) -> Value:
    """The value that a loop goes over, also in a comprehension: a batch's keys if the loop indexes it by its target."""
    parts = value.members
    if not any(_is_batch(part) for part in parts) or not _asks_for_keys(loop, target, iterable):
        return value
    return union(_KEYS if _is_batch(part) else part for part in parts)


def _is_batch(value: Value) -> bool:
    return isinstance(value, Sequence) and value.type == "batch"


def _asks_for_keys(loop: ast.AST, target: ast.expr, iterable: ast.expr) -> bool:
    """True for code like `for key in batch: batch[key]`."""
    name, path = path_of(target), path_of(iterable)
    return bool(name and path) and any(
        isinstance(node, ast.Subscript) and path_of(node.value) == path and path_of(node.slice) == name
        for node in ast.walk(loop)
    )


def drawn(structure: Structure, function: ast.AST | None, node: ast.Assign, value: Value) -> Value:
    """The value of an assignment: a batch on the CPU for `x, y = next(batches)`, where nothing else is known."""
    if not value.is_unknown or not isinstance(node.value, ast.Call) or function is None:
        return value
    if not isinstance(node.value.func, ast.Name) or node.value.func.id != "next" or len(node.targets) != 1:
        return value
    moved = _moved_in(structure, function)
    return value if moved is None else _element(node.targets[0], value, moved)


def _moved_in(structure: Structure, scope: ast.AST) -> set[str] | None:
    """The names that a loop or function moves and runs a model on; None if there are none."""
    if structure.batches is None:
        structure.batches = _batches(structure)
    return structure.batches.get(scope)


def _element(target: ast.expr, value: Value, moved: set[str]) -> Value:
    if value.is_unknown:
        return value if moved.isdisjoint(names_in(target)) else _BATCH
    if isinstance(target, ast.Tuple) and isinstance(value, Sequence) and value.items is not None:
        if len(value.items) == len(target.elts):
            # `enumerate`, `zip`
            pairs = zip(target.elts, value.items, strict=True)
            items = tuple([_element(part, item, moved) for part, item in pairs])
            return Sequence(value.type, union(items), items)
    return value


def _batches(structure: Structure) -> Moves:
    runs = Moves()
    moving: dict[ast.AST, set[str]] = {}
    for call in structure.every(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda"):
            moving.setdefault(_statement(structure, call), set()).add(root_of(call.func.value))
        elif conventions.is_model(last_name(call.func)):
            for loop in _around(structure, call):
                runs.setdefault(loop, set()).update(_passed(call))
    found = Moves()
    for statement, moved in moving.items() if runs else ():
        names = names_in(statement)
        for loop in _around(structure, statement):
            passed = names & runs.get(loop, set())
            if passed:
                # `x = batch["x"].cuda(); model(x)`: the other elements of the batch are with the one that moves.
                found.setdefault(loop, set()).update(passed | moved)
    return found


def _passed(call: ast.Call) -> set[str]:
    """The names whose values, or parts of them, a call passes."""
    starred = [arg.value if isinstance(arg, ast.Starred) else arg for arg in call.args]
    return {root_of(part) for part in (*starred, *[keyword.value for keyword in call.keywords])}


def _statement(structure: Structure, node: ast.AST) -> ast.AST:
    """The simple statement around an expression, or the expression itself in the head of a compound one."""
    around = structure.parents.get(node)
    while isinstance(around, ast.expr | ast.keyword | ast.comprehension):
        node, around = around, structure.parents.get(around)
    simple = isinstance(around, ast.stmt) and not hasattr(around, "body")
    return around if simple and around is not None else node


def _around(structure: Structure, node: ast.AST) -> Iterator[ast.AST]:
    """The loops around a node in its function, and the function."""
    around = structure.parents.get(node)
    while around is not None and not isinstance(around, ast.ClassDef):
        if isinstance(around, ast.For | ast.AsyncFor | FunctionNode):
            yield around
        around = None if isinstance(around, FunctionNode) else structure.parents.get(around)
