"""Copies in each iteration of a loop, where one copy before or after the loop would do."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.semantics.around import Loop, loops_around, targets
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import children, last_name, names_in, root_of, walk

_PAIRS = frozenset({"enumerate", "zip", "tqdm", "reversed", "list", "trange"})
"""Functions whose elements are, or hold, the elements of their arguments."""
_PARTS = frozenset({"split", "chunk", "unbind", "tensor_split"})
"""Methods of tensors that return parts."""


def whole_of(site: CallSite) -> ast.expr | None:
    """The tensor from before the innermost loop that each iteration copies a part of; None if there is none.

    `x` of `for i in range(n): x[i].cpu()`, of `for y in x: y.cpu()` and of `for y in x.split(2): y.cpu()`.
    """
    loop = next(loops_around(site.model, site.node), None)
    if loop is None or not isinstance(site.node.func, ast.Attribute):
        return None
    copied, changing = site.node.func.value, _bound_in(site.model, loop)
    if isinstance(copied, ast.Compare) and len(copied.comparators) == 1:
        # `(x[i] > y).cpu()`
        copied = copied.left if names_in(copied.comparators[0]).isdisjoint(changing) else copied
    base, indices = _part(copied)
    if not isinstance(base, ast.Name):
        return None
    if base.id not in changing:
        is_part = site.value(base).tensor is not None and not indices.isdisjoint(changing)
        return base if is_part else None
    return next(_gone_over(site, loop, base.id), None) if base.id not in _assigned_in(site.model, loop) else None


def is_same_each_turn(site: CallSite) -> bool:
    """True if a copy takes a tensor that the innermost loop around it leaves as it is."""
    loop = next(loops_around(site.model, site.node), None)
    if loop is None or not isinstance(site.node.func, ast.Attribute):
        return False
    copied = site.node.func.value
    base, _ = _part(copied)
    if not isinstance(base, ast.Name) or (site.value(base).tensor is None and not _is_index_of(copied, base)):
        return False
    return names_in(copied).isdisjoint(_bound_in(site.model, loop)) and base.id not in _written_in(site.model, loop)


def is_added_up(site: CallSite) -> bool:
    """True if the innermost loop only adds a copied tensor to a sum, which may stay on the GPU until the loop ends.

    `total += x.cpu()` and `total = total + x.cpu() / n`. Not numbers: a sum of these takes little time anywhere.
    """
    model, inner = site.model, site.node
    loop = next(loops_around(model, inner), None)
    copied = site.value(site.node).tensor
    outer: ast.AST | None = model.parent(inner)
    while isinstance(outer, ast.BinOp) and isinstance(outer.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
        outer = model.parent(outer)
    name = _sum(outer)
    if loop is None or not name or (copied is not None and copied.rank == 0):
        return False
    return all(inside is outer for node, inside in _with_statement(loop) if node.id == name)


def _sum(statement: ast.AST | None) -> str:
    """The name that a statement adds something to; empty for other statements."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        return statement.target.id if isinstance(statement.target, ast.Name) else ""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Name) or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return ""
    added = (side.id for side in (value.left, value.right) if isinstance(side, ast.Name))
    return target.id if target.id in added else ""


def _with_statement(loop: Loop) -> Iterator[tuple[ast.Name, ast.stmt | None]]:
    """The names in a loop, each with the simple statement around it."""
    waiting: list[tuple[ast.AST, ast.stmt | None]] = [(loop, None)]
    while waiting:
        node, statement = waiting.pop()
        if isinstance(node, ast.Name):
            yield node, statement
        inside = node if isinstance(node, ast.stmt) and not hasattr(node, "body") else statement
        waiting += [(child, inside) for child in children(node)]


def _is_index_of(node: ast.expr, base: ast.Name) -> bool:
    """True for `x[i][j]`: an element of something that was shown to hold tensors by a copy of it."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node is base


def _part(node: ast.expr) -> tuple[ast.expr, set[str]]:
    """The expression that methods, attributes and indices are taken of, and the names in the indices."""
    indices: set[str] = set()
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            indices |= names_in(node.slice)
            node = node.value
        elif isinstance(node, ast.Attribute) and node.attr in ("data", "T"):
            node = node.value
        else:
            return node, indices


def _gone_over(site: CallSite, loop: Loop, name: str) -> Iterator[ast.expr]:
    """The tensor whose parts a loop binds to a name."""
    for target, iterable in targets(loop):
        for bound, source in _pairs(target, iterable):
            if not isinstance(bound, ast.Name) or bound.id != name:
                continue
            if isinstance(source, ast.Call) and last_name(source) in _PARTS and isinstance(source.func, ast.Attribute):
                source = source.func.value
            if site.value(source).tensor is not None:
                yield source


def _pairs(target: ast.expr, iterable: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of a loop, each with the expression whose elements it gets."""
    function = last_name(iterable) if isinstance(iterable, ast.Call) else ""
    if not isinstance(iterable, ast.Call) or function not in _PAIRS or not iterable.args:
        yield target, iterable
    elif function == "enumerate":
        if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == 2:
            yield from _pairs(target.elts[1], iterable.args[0])
    elif function == "zip":
        if isinstance(target, (ast.Tuple, ast.List)):
            for bound, source in zip(target.elts, iterable.args, strict=False):
                yield from _pairs(bound, source)
    else:
        yield from _pairs(target, iterable.args[0])


@once_per_node
def _bound_in(model: Model, loop: Loop) -> frozenset[str]:
    """The names that a loop binds: its targets, and those that its body assigns."""
    return _assigned_in(model, loop).union(*(names_in(target) for target, _ in targets(loop)))


@once_per_node
def _assigned_in(model: Model, loop: Loop) -> frozenset[str]:
    """The names that the body of a loop assigns."""
    body = loop.body if isinstance(loop, (ast.For, ast.AsyncFor, ast.While)) else []
    found = (node for statement in body for node in walk(statement))
    return frozenset(node.id for node in found if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


@once_per_node
def _written_in(model: Model, loop: Loop) -> frozenset[str]:
    """The names whose tensors a loop may write in place: `x[0] = y`, `x.add_(y)`, `f(x)` as a statement."""
    found: set[str] = set()
    for node in walk(loop):
        if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            found |= names_in(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            given = [node.value.func, *node.value.args, *(keyword.value for keyword in node.value.keywords)]
            found |= {root_of(each) for each in given if isinstance(each, (ast.Name, ast.Attribute))}
        elif isinstance(node, ast.Call) and last_name(node).endswith("_"):
            found |= names_in(node)
    return frozenset(found)
