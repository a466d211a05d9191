"""Nominates the sites of a file: every place that some rule may want to look at."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from perflint.semantics.sites import CallSite, FileSite, FormatSite, Site, SubscriptSite, TruthSite
from perflint.semantics.structure import tested
from perflint.semantics.values import ON_CPU, Array, Device, Evidence, Function, Mapping, Name, Tensor, Value

if TYPE_CHECKING:
    from perflint.semantics.model import Model


def sites(model: Model) -> Iterator[Site]:
    """The sites of a file or of a part of it, construct by construct, each in source order. A part has no file site."""
    part = model.part
    if part is None:
        yield FileSite(model, ast.Constant(None, lineno=1, col_offset=0, end_lineno=1, end_col_offset=0))
    for kind, handler in _NODES.items():
        for node in model.nodes(kind):
            if part is None or _line(node) in part:
                yield from handler(model, node)


def _line(node: ast.AST) -> int:
    """The line of a node; two types of nodes have none themselves."""
    if isinstance(node, ast.comprehension):
        return node.target.lineno
    if isinstance(node, ast.match_case):
        return node.pattern.lineno
    assert isinstance(node, (ast.expr, ast.stmt))
    return node.lineno


def _call(model: Model, node: ast.Call) -> Iterator[Site]:
    target = model.target(node)
    if target:
        yield call_site(model, node)
        yield from _formatted_by_call(model, node, target)


def call_site(model: Model, node: ast.Call) -> CallSite:
    """The site of a call; its target is empty if it is unknown."""
    target = model.target(node)
    return CallSite(model, node, target, _receiver(model, node, target))


def _receiver(model: Model, node: ast.Call, target: str) -> Value | None:
    if not isinstance(node.func, ast.Attribute):
        return None
    value = model.value(node.func.value)
    if isinstance(value, Name) and value.receiver is None:
        return None
    if target.startswith("torch.Tensor.") and value.tensor is None:
        return Tensor(Device.CPU if value == ON_CPU else Device.UNKNOWN, evidence=Evidence.USE)
    return value


_SINKS = {"builtins.print": "print", "builtins.str": "str", "builtins.repr": "repr", "builtins.format": "format"}
_LOG_METHODS = frozenset({"debug", "info", "warning", "warn", "error", "critical", "exception", "log"})


def _formatted_by_call(model: Model, node: ast.Call, target: str) -> Iterator[Site]:
    sink = _SINKS.get(target)
    last = target.rpartition(".")[2]
    if sink is None and last in _LOG_METHODS and ("logging" in target or "Logger" in target or "loguru" in target):
        # The waits of a logger of the project are in its own code.
        is_own = any(isinstance(each, Function) for each in model.value(node.func).members)
        sink = None if is_own else "logging"
    if sink is None and target == "builtins.str.format":
        sink = "str.format"
    if sink is None:
        return
    for arg in (*node.args, *(keyword.value for keyword in node.keywords if sink == "str.format")):
        if not isinstance(arg, (ast.Constant, ast.Starred, ast.JoinedStr)):
            yield FormatSite(model, arg, sink)


def _formatted(model: Model, node: ast.FormattedValue) -> Iterator[Site]:
    yield FormatSite(model, node.value, "f-string")


def _modulo(model: Model, node: ast.BinOp) -> Iterator[Site]:
    if isinstance(node.op, ast.Mod) and isinstance(node.left, (ast.Constant, ast.JoinedStr)):
        parts = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        for part in parts:
            yield FormatSite(model, part, "%")


def _subscript(model: Model, node: ast.Subscript) -> Iterator[Site]:
    if isinstance(model.value(node.value), (Mapping, Name, Array)):
        return
    yield subscript_site(model, node)


def subscript_site(model: Model, node: ast.Subscript) -> SubscriptSite:
    """The site of an indexing."""
    parent = model.parent(node)
    if isinstance(node.ctx, ast.Load):
        return SubscriptSite(model, node, "load")
    if isinstance(node.ctx, ast.Del):
        return SubscriptSite(model, node, "delete")
    if isinstance(parent, ast.AugAssign):
        return SubscriptSite(model, node, "augmented", parent.value)
    stored = parent.value if isinstance(parent, (ast.Assign, ast.AnnAssign)) else None
    return SubscriptSite(model, node, "store", stored)


# Truth


def _tested(construct: str, model: Model, node: ast.expr) -> Iterator[Site]:
    for each in tested(node):
        if not isinstance(each, ast.Constant):
            yield TruthSite(model, each, construct)


def _if(model: Model, node: ast.If) -> Iterator[Site]:
    yield from _tested("if", model, node.test)


def _while(model: Model, node: ast.While) -> Iterator[Site]:
    yield from _tested("while", model, node.test)


def _assert(model: Model, node: ast.Assert) -> Iterator[Site]:
    yield from _tested("assert", model, node.test)


def _conditional(model: Model, node: ast.IfExp) -> Iterator[Site]:
    yield from _tested("conditional expression", model, node.test)


def _comprehension(model: Model, node: ast.comprehension) -> Iterator[Site]:
    for condition in node.ifs:
        yield from _tested("comprehension", model, condition)


def _case(model: Model, node: ast.match_case) -> Iterator[Site]:
    if node.guard is not None:
        yield from _tested("case", model, node.guard)


def _is_tested(model: Model, node: ast.expr) -> bool:
    """True if a construct around the expression asks for its truth already."""
    parent = model.parent(node)
    if isinstance(parent, ast.BoolOp) or (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)):
        return True
    if isinstance(parent, (ast.If, ast.While, ast.Assert, ast.IfExp)):
        return parent.test is node
    if isinstance(parent, ast.comprehension):
        return node in parent.ifs
    return isinstance(parent, ast.match_case) and parent.guard is node


def _boolean(model: Model, node: ast.BoolOp) -> Iterator[Site]:
    if not _is_tested(model, node):
        construct = "and" if isinstance(node.op, ast.And) else "or"
        for operand in node.values[:-1]:
            yield from _tested(construct, model, operand)


def _not(model: Model, node: ast.UnaryOp) -> Iterator[Site]:
    if isinstance(node.op, ast.Not) and not _is_tested(model, node):
        yield from _tested("not", model, node.operand)


def _compare(model: Model, node: ast.Compare) -> Iterator[Site]:
    operands = [node.left, *node.comparators]
    elements = [operands[at] for at, op in enumerate(node.ops) if isinstance(op, (ast.In, ast.NotIn))]
    if elements:
        # A tensor raises an error if it is asked for a text, so the container is another mapping.
        if not all(_is_text(element) for element in elements):
            yield TruthSite(model, node, "in")
    elif len(node.ops) > 1 and not _is_tested(model, node):
        yield TruthSite(model, node, "chained comparison")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


_NODES: dict[type[ast.AST], Callable[[Model, Any], Iterator[Site]]] = {
    ast.Call: _call,
    ast.FormattedValue: _formatted,
    ast.BinOp: _modulo,
    ast.Subscript: _subscript,
    ast.If: _if,
    ast.While: _while,
    ast.Assert: _assert,
    ast.IfExp: _conditional,
    ast.comprehension: _comprehension,
    ast.match_case: _case,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _not,
    ast.Compare: _compare,
}
