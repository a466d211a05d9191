"""Loops whose iterations go on with the results of the last one: they decode tokens, or remove noise step by step."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from perflint.semantics.binders import LOOPS
from perflint.semantics.memo import once_per_node
from perflint.semantics.structure import last_name, names_in, root_of, walk

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred


def decodes(model: Inferred, call: ast.Call) -> bool:
    """True for `model(token)` in a loop with `token = logits[:, -1].argmax(-1)`, where `logits` is its result.

    Also for `token = model(token).argmax(-1)` of a model that returns the last position alone.
    """
    loop = next((outer for outer in model.ancestors(call) if isinstance(outer, (ast.For, ast.While))), None)
    return loop is not None and call in decoding_calls(model, loop)


@once_per_node
def decoding_calls(model: Inferred, loop: ast.AST) -> frozenset[ast.Call]:
    """The calls of a loop that decode."""
    last = {root_of(node.value) for node in walk(loop) if isinstance(node, ast.Subscript) and _takes_last(node)}
    bound = list(_bound(loop))
    picked = frozenset(
        call
        for names, value in bound
        if (call := _picked_from(value)) is not None
        and not (names | _computed_from(names, bound)).isdisjoint(_given(call))
    )
    return picked | frozenset(
        call
        for names, value in bound
        if not last.isdisjoint(names)
        and (call := _call_in(value)) is not None
        and not _computed_from(names & last, bound).isdisjoint(_given(call))
    )


def goes_on(loop: ast.AST, is_work: Callable[[ast.Call], bool]) -> bool:
    """True if a loop gives work what it computed in the last iteration: `x = sample(model, x, t)`."""
    if not isinstance(loop, LOOPS):
        return False
    bound = [*_bound(loop), *_grown(loop)]
    for targets, value in bound:
        computed = targets | _computed_from(targets, bound)
        for call in (node for node in walk(value) if isinstance(node, ast.Call)):
            if is_work(call) and not (_given(call) & computed) <= _set_anew(loop, call, computed):
                return True
    return False


def _set_anew(loop: ast.For | ast.AsyncFor | ast.While, call: ast.Call, computed: set[str]) -> set[str]:
    """The names that each iteration binds before a call to something that it does not compute from others."""
    names = set() if isinstance(loop, ast.While) else set(names_in(loop.target))
    for statement in loop.body:
        if call in walk(statement):
            break
        if isinstance(statement, ast.Assign) and computed.isdisjoint(names_in(statement.value)):
            names |= {root_of(part) for target in statement.targets for part in getattr(target, "elts", (target,))}
    return names


def _grown(loop: ast.AST) -> Iterator[tuple[set[str], ast.expr]]:
    """The lists to which a loop appends, with the element."""
    for node in walk(loop):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            for element in node.args:
                yield {root_of(node.func.value)} - {"", "self"}, element


def _takes_last(node: ast.Subscript) -> bool:
    """True for `x[:, -1]`, `x[:, -1, :]` and `x[..., -1, :]`."""
    if not isinstance(node.ctx, ast.Load) or not isinstance(node.slice, ast.Tuple) or len(node.slice.elts) < 2:
        return False
    rows, position = node.slice.elts[:2]
    is_whole = isinstance(rows, ast.Slice) or (isinstance(rows, ast.Constant) and rows.value is ...)
    return is_whole and isinstance(position, ast.UnaryOp) and ast.unparse(position) == "-1"


def _bound(loop: ast.AST) -> Iterator[tuple[set[str], ast.expr]]:
    """The names that each assignment of a loop binds or writes to, with the value."""
    for node in walk(loop):
        if isinstance(node, ast.Assign):
            targets = [part for target in node.targets for part in getattr(target, "elts", (target,))]
            yield {root_of(target) for target in targets} - {"", "self"}, node.value
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and node.value is not None:
            yield {root_of(node.target)} - {"", "self"}, node.value


def _call_in(value: ast.expr) -> ast.Call | None:
    """The call whose result, or a part of it, a value is: `model(ids).logits`."""
    while isinstance(value, (ast.Attribute, ast.Subscript)):
        value = value.value
    return value if isinstance(value, ast.Call) else None


_PICKS = frozenset({"argmax", "multinomial", "topk"})
_PREPARES = frozenset({"softmax", "log_softmax", "float", "exp", "div", "view", "squeeze", "reshape"})


def _picked_from(value: ast.expr) -> ast.Call | None:
    """The call of whose result a token is picked: `model(token)` for `model(token).softmax(-1).argmax(-1)`."""
    node, picks = value, False
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        if not isinstance(node, ast.Call):
            node = node.value
            continue
        name = last_name(node)
        if name not in _PICKS | _PREPARES:
            return node if picks else None
        picks = picks or name in _PICKS
        is_function = root_of(node.func) in ("torch", "F", "functional") and bool(node.args)
        if not is_function and not isinstance(node.func, ast.Attribute):
            return None
        node = node.args[0] if is_function else node.func.value  # type: ignore[attr-defined]
    return None


def _given(call: ast.Call) -> set[str]:
    return {name for part in (*call.args, *call.keywords) for name in names_in(part)}


def _computed_from(names: set[str], bound: list[tuple[set[str], ast.expr]]) -> set[str]:
    """Names, and those that a loop computes from them."""
    found, before = set(names), -1
    while len(found) != before:
        before = len(found)
        for targets, value in bound:
            if not found.isdisjoint(names_in(value)):
                found |= targets
    return found - names
