"""The uses of the objects that the callers of a function hand to it: `def train(self, buffer): buffer.sample()`.

The file of such a function does not show the classes of its arguments. So its summary lists the uses by parameter, and
the objects that the calls of the function pass tell later which methods these are.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from perflint.semantics.binders import How, parameters
from perflint.semantics.callers.constants import kept_parameter
from perflint.semantics.callers.summary import Call, FunctionKey, Parameter, Passed, Use
from perflint.semantics.structure import FunctionInfo, last_name

if TYPE_CHECKING:
    from perflint.semantics.model import Model

_CALLED = "__call__"


def uses_of_parameters(
    model: Model, keys: Callable[[ast.Call], list[FunctionKey]], call_of: Callable[[ast.Call, FunctionKey], Call]
) -> Iterator[tuple[Parameter, Use]]:
    """The uses of parameters whose objects the file does not know.

    `keys` gives the functions of the project that a call may call, `call_of` the record of a call of one of them.
    """
    for node in model.nodes(ast.Call):
        if model.value(node.func).is_unknown:
            is_method = isinstance(node.func, ast.Attribute)
            held = _parameter_held(model, node.func.value if isinstance(node.func, ast.Attribute) else node.func)
            if held is not None:
                unknown = FunctionKey(model.module.path, "")
                yield held, Use(call_of(node, unknown), last_name(node) if is_method else _CALLED)
        passed: list[tuple[ast.expr, Passed]] = [
            *((each, position) for position, each in enumerate(node.args)),
            *((each.value, each.arg) for each in node.keywords if each.arg is not None),
        ]
        if any(isinstance(each, ast.Starred) for each in node.args):
            continue
        for argument, place in passed:
            held = _parameter_held(model, argument)
            for key in keys(node) if held is not None else ():
                assert held is not None
                yield held, Use(call_of(node, key), passed_as=place)


def _parameter_held(model: Model, node: ast.expr) -> Parameter | None:
    """The parameter whose object an expression is, if nothing else is known of that; None for other expressions."""
    if not isinstance(node, (ast.Name, ast.Attribute)) or not model.value(node).is_unknown:
        return None
    info = model.module.defined_by(model.function(node))
    if info is None or info.outer is not None:
        return None
    if isinstance(node, ast.Name):
        is_given = [each.how for each in model.symbols.variable(node).bindings] == [How.PARAMETER]
        return _parameter(model, info, node.id) if is_given and node.id in parameters(info.node) else None
    owner = model.module.klass(info.owner) if isinstance(node.value, ast.Name) and node.value.id == "self" else None
    kept = None if owner is None else kept_parameter(model, owner, node.attr)
    return None if owner is None or kept is None else _parameter(model, owner.methods["__init__"], kept)


def _parameter(model: Model, info: FunctionInfo, name: str) -> Parameter:
    return Parameter(FunctionKey(model.module.path, info.qualname), name)
