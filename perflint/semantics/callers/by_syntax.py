"""The special methods that syntax and functions of Python call: `with timer:`, `boxes[keep]`, `len(x)`, `a + b`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.values import UNKNOWN, Instance

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred
    from perflint.semantics.module import Module
    from perflint.semantics.structure import FunctionInfo

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "__add__",
    ast.Sub: "__sub__",
    ast.Mult: "__mul__",
    ast.Div: "__truediv__",
    ast.FloorDiv: "__floordiv__",
    ast.Mod: "__mod__",
    ast.Pow: "__pow__",
    ast.MatMult: "__matmul__",
    ast.BitAnd: "__and__",
    ast.BitOr: "__or__",
}
_FUNCTIONS = {
    f"builtins.{name}": f"__{name}__" for name in "len float int bool str repr abs iter next reversed hash".split()
}


class SpecialCall(NamedTuple):
    """A call of a special method."""

    place: ast.expr | ast.stmt
    """A node that runs as often as the method."""
    module: Module
    method: FunctionInfo
    """The method of a class of the module."""
    arguments: Arguments


def special_calls(model: Inferred) -> Iterator[SpecialCall]:
    """The calls in a file of special methods that classes of the project define."""
    for place, operand, name, arguments in _asked(model):
        for member in model.value(operand).members:
            lineage = model.lineage(member.cls) if isinstance(member, Instance) else ()
            classes = (found for cls in lineage if (found := model.view.klass(cls)) is not None)
            defined = ((module, info.methods[name]) for module, info in classes if name in info.methods)
            yield from (SpecialCall(place, *each, arguments) for each in islice(defined, 1))


def _asked(model: Inferred) -> Iterator[tuple[ast.expr | ast.stmt, ast.expr, str, Arguments]]:
    """Each place, with the expression of the object, the name of the method, and what is passed to it."""
    nothing = Arguments()
    for node in model.nodes(ast.Subscript):
        index = model.value(node.slice)
        if isinstance(node.ctx, ast.Load):
            yield node, node.value, "__getitem__", Arguments((index,))
        elif isinstance(node.ctx, ast.Store):
            yield node, node.value, "__setitem__", Arguments((index, UNKNOWN))
    for item in model.nodes(ast.withitem):
        yield item.context_expr, item.context_expr, "__enter__", nothing
        yield item.context_expr, item.context_expr, "__exit__", Arguments(unpacked=True)
    for loop in model.nodes(ast.For):
        yield loop.iter, loop.iter, "__iter__", nothing
        yield loop.body[0], loop.iter, "__next__", nothing
    for part in model.nodes(ast.comprehension):
        yield part.iter, part.iter, "__iter__", nothing
    for operation in model.nodes(ast.BinOp):
        method = _OPERATORS.get(type(operation.op))
        if method is not None:
            yield operation, operation.left, method, Arguments((model.value(operation.right),))
    for call in model.nodes(ast.Call):
        method = _FUNCTIONS.get(model.target(call))
        if method is not None and len(call.args) == 1:
            yield call, call.args[0], method, nothing
