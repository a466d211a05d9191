"""Parameters that keep their defaults, because no call of the project passes them."""

from __future__ import annotations

import ast

from perflint.semantics.callers.public import serves_programs
from perflint.semantics.callers.uses import calls_of, may_read_method, other_code_may_call
from perflint.semantics.project import Module
from perflint.semantics.structure import FunctionInfo
from perflint.semantics.test_files import is_test_path
from perflint.semantics.view import View


def keeps_default(view: View, module: Module, info: FunctionInfo, parameter: str) -> bool:
    """True if all calls of a function are calls of the project, outside of tests, and none may pass a parameter.

    Other code may call a function that is read in any other way, a method that is not private, and a function of a
    library, unless the function or the parameter is private.
    """
    node = info.node
    if isinstance(node, ast.Lambda) or info.outer is not None:
        return False
    if node.name.startswith("__") or (info.owner and not node.name.startswith("_")):
        return False
    if not (node.name.startswith("_") or parameter.startswith("_") or serves_programs(view, module)):
        return False
    if other_code_may_call(view, module, info.qualname):
        return False
    paths = {file.path for file in view.mentioning(node.name) if not is_test_path(file.path)} | {module.path}
    users = [module if path == module.path else view.peek(path) for path in sorted(paths)]
    if info.owner and any(user is not None and may_read_method(user, node.name) for user in users):
        return False
    calls = [None if user is None else calls_of(user, node.name) for user in users]
    made = [call for known in calls if known is not None for call in known]
    # The object of a method may be its first argument.
    positional = [each.arg for each in (*node.args.posonlyargs, *node.args.args)][bool(info.owner) :]
    return None not in calls and bool(made) and not any(_may_pass(call, positional, parameter) for call in made)


def _may_pass(call: ast.Call, positional: list[str], parameter: str) -> bool:
    """True if a call may pass an argument for a parameter."""
    if any(keyword.arg in (None, parameter) for keyword in call.keywords):
        return True
    is_starred = any(isinstance(each, ast.Starred) for each in call.args)
    return parameter in positional and (is_starred or len(call.args) > positional.index(parameter))
