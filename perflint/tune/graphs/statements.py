"""Facts of single statements and calls of a training step."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from perflint.semantics.structure import path_of, root_of
from perflint.tune.graphs.purity import is_in_place, loaded_names, stored_names


def is_method(node: ast.AST, name: str) -> bool:
    """True for a call of a method with a name."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name


def counters_of(loop: ast.AST) -> Iterator[str]:
    """The numbers that a loop counts with."""
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.value, ast.Constant):
            yield from stored_names(node.target)
        if isinstance(node, ast.For):
            yield from _counted(node.target, node.iter)


def _counted(target: ast.expr, iterated: ast.expr) -> Iterator[str]:
    """The names in the target of a loop that are numbers."""
    if not isinstance(iterated, ast.Call):
        return
    called = path_of(iterated.func).rpartition(".")[2]
    if called in ("range", "trange"):
        yield from stored_names(target)
    elif called == "tqdm" and iterated.args:
        yield from _counted(target, iterated.args[0])
    elif called == "enumerate" and iterated.args and isinstance(target, ast.Tuple):
        yield from stored_names(target.elts[0])
        yield from _counted(target.elts[1], iterated.args[0])


def written_into(statement: ast.stmt) -> Iterator[ast.expr]:
    """The attributes that a statement assigns, and the objects whose elements it assigns."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            yield node.value


def updated(statement: ast.stmt) -> Iterator[str]:
    """The objects whose methods a statement calls for their effect."""
    for each in simple(statement):
        value = getattr(each, "value", None) if isinstance(each, ast.Expr) else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            yield path_of(value.func.value)


def is_movable(statement: ast.stmt, may_raise: bool = False) -> bool:
    """True for a simple statement, and for an `if` of such."""
    if isinstance(statement, ast.If):
        return all(is_movable(each, may_raise) for each in (*statement.body, *statement.orelse))
    simple = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Pass)
    return isinstance(statement, simple) or (may_raise and isinstance(statement, ast.Raise))


def simple(statement: ast.stmt) -> Iterator[ast.AST]:
    """The statements inside a statement, and its conditions; itself if there are none."""
    if isinstance(statement, ast.If):
        yield statement.test
        for each in (*statement.body, *statement.orelse):
            yield from simple(each)
    else:
        yield statement


def is_sum(statement: ast.AST) -> bool:
    """True for `total += loss` and `total = total + loss`, which keep no tensor but their own."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.AugAssign)) else None
    if value is None or any(isinstance(node, ast.Call) for node in ast.walk(value)):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", value)]
    is_new = isinstance(statement, ast.AugAssign) or isinstance(value, ast.BinOp)
    return is_new and all(isinstance(each, ast.Name) for each in targets)


def is_backward(node: ast.AST) -> bool:
    """True for `loss.backward()`."""
    return isinstance(node, ast.Call) and not node.args and is_method(node, "backward")


def changed_in_place(statement: ast.stmt) -> Iterator[str]:
    """The names of objects whose methods that end in `_` a statement calls."""
    for node in ast.walk(statement):
        if is_in_place(node) and isinstance(node, ast.Call):
            yield root_of(node.func)


def paths(statement: ast.stmt) -> Iterator[str]:
    """The names and attributes of a statement."""
    return (path_of(node) for node in ast.walk(statement) if isinstance(node, (ast.Name, ast.Attribute)))


def receiver(call: ast.Call) -> str:
    """The path of the object whose method is called."""
    return path_of(call.func).rpartition(".")[0]


def holds_flow(statement: ast.stmt, may_raise: bool = False) -> bool:
    """True for code that cannot move, as it may leave its place or be left."""
    kinds = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Try, ast.Delete)
    found = [node for node in ast.walk(statement) if isinstance(node, (*kinds, ast.Raise))]
    return any(not (may_raise and isinstance(node, ast.Raise)) for node in found)


def leaves(statement: ast.stmt) -> bool:
    """True for code that cannot be in a function of its own."""
    kinds = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
    return any(isinstance(node, kinds) for node in ast.walk(statement))


def loaded_outside(node: ast.AST, parts: Sequence[ast.AST]) -> list[ast.Name]:
    """The names that a node reads outside of some of its parts."""
    inside = {each for part in parts for each in ast.walk(part)}
    return [name for name in loaded_names(node) if name not in inside]
