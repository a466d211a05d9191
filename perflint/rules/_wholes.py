"""Copies in each turn of a loop, of a tensor or one of its parts, where one copy before the loop would do."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.rules._places import Loop, loops_around, targets
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import last_name, names_in, root_of, walk

_PAIRS = frozenset({"enumerate", "zip", "tqdm", "reversed", "list", "trange"})
"""Functions whose elements are, or hold, the elements of their arguments."""
_PARTS = frozenset({"split", "chunk", "unbind", "tensor_split"})
"""Methods of tensors that return parts."""


def whole_of(site: CallSite) -> ast.expr | None:
    """The tensor from before the innermost loop that is copied part by part, one in each turn; None if there is none.

    `x` of `for i in range(n): x[i].cpu()`, of `for y in x: y.cpu()` and of `for y in x.split(2): y.cpu()`.
    """
    loop = next(loops_around(site.model, site.node), None)
    if loop is None or not isinstance(site.node.func, ast.Attribute):
        return None
    base, indices = _part(site.node.func.value)
    if not isinstance(base, ast.Name):
        return None
    changing = _bound_in(site.model, loop)
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
    if not isinstance(base, ast.Name) or site.value(base).tensor is None:
        return False
    return names_in(copied).isdisjoint(_bound_in(site.model, loop)) and base.id not in _written_in(site.model, loop)


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
