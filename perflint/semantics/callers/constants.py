"""Parameters that all calls of the project give one constant, or leave at it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perflint.semantics.binders import defaults
from perflint.semantics.callers.uses import calls_of, may_read_method, other_code_may_call
from perflint.semantics.structure import FunctionInfo
from perflint.semantics.test_files import is_test_path

if TYPE_CHECKING:
    from perflint.semantics.model import Model


def constant_given(model: Model, info: FunctionInfo, parameter: str) -> ast.Constant | None:
    """The constant that a parameter has in all calls of a function, passed or by default; None if there is no such one.

    All calls must be calls of the project, outside of tests. Other code may call a function that is read in any other
    way, a method that is not private, and a function of a library, unless the function or the parameter is private.
    """
    view, module, node = model.view, model.module, info.node
    if isinstance(node, ast.Lambda) or info.outer is not None:
        return None
    if node.name.startswith("__") or (info.owner and not node.name.startswith("_")):
        return None
    is_private = node.name.startswith("_") or parameter.startswith("_")
    if not (is_private or model.serves_programs or (module.is_program and not model.is_imported)):
        return None
    if other_code_may_call(view, module, info.qualname):
        return None
    paths = {file.path for file in view.mentioning(node.name) if not is_test_path(file.path)} | {module.path}
    users = [module if path == module.path else view.peek(path) for path in sorted(paths)]
    if info.owner and any(user is not None and may_read_method(user, node.name) for user in users):
        return None
    calls = [None if user is None else calls_of(user, node.name) for user in users]
    made = [call for known in calls if known is not None for call in known]
    if None in calls or not made:
        return None
    # The object of a method may be its first argument.
    positional = [each.arg for each in (*node.args.posonlyargs, *node.args.args)][bool(info.owner) :]
    default = defaults(node).get(parameter)
    given = [_given(call, positional, parameter, default) for call in made]
    first = given[0]
    if not isinstance(first, ast.Constant):
        return None
    return first if all(isinstance(each, ast.Constant) and _same(each, first) for each in given) else None


def _same(one: ast.Constant, other: ast.Constant) -> bool:
    return type(one.value) is type(other.value) and one.value == other.value


def _given(call: ast.Call, positional: list[str], parameter: str, default: ast.expr | None) -> ast.expr | None:
    """The argument of a call for a parameter, or the default; None if neither is certain."""
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    if parameter in positional:
        index = positional.index(parameter)
        if any(isinstance(each, ast.Starred) for each in call.args):
            return None
        if len(call.args) > index:
            return call.args[index]
    return next((keyword.value for keyword in call.keywords if keyword.arg == parameter), default)
