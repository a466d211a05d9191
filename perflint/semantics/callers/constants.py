"""Parameters that all calls of the project give one constant, or leave at it, and attributes that keep such a one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from perflint.semantics.binders import How, defaults
from perflint.semantics.callers.uses import calls_of, may_read_method, other_code_may_call, other_code_may_find
from perflint.semantics.module import Module
from perflint.semantics.structure import ClassInfo, FunctionInfo, last_name

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred

_PLAIN_BASES = frozenset("Module object ABC Generic".split())
"""Classes of libraries that set no attributes of the classes that derive from them."""
_COMPUTED = re.compile(r"\bsetattr\(|(?<!\*\*self\.)\b__dict__\b|\bvars\(")
"""Code that sets attributes by names that only a run knows; `"…".format(**self.__dict__)` reads them."""


def constant_given(model: Inferred, info: FunctionInfo, parameter: str) -> ast.Constant | None:
    """The constant that a parameter has in all calls of a function, passed or by default; None if there is no such one.

    All calls must be calls of the project, outside of tests. Other code may call a function that is read in any other
    way, a method that is not private, and a function of a library, unless the function or the parameter is private.
    """
    node = info.node
    if isinstance(node, ast.Lambda) or info.outer is not None:
        return None
    if node.name.startswith("__") or (info.owner and not node.name.startswith("_")):
        return None
    is_private = node.name.startswith("_") or parameter.startswith("_")
    if not (is_private or model.serves_programs or _is_closed(model)):
        return None
    if _may_be_called(model, info.qualname):
        return None
    users = _users(model, node.name)
    if info.owner and any(user is not None and may_read_method(user, node.name) for user in users):
        return None
    # The object of a method may be its first argument.
    return _constant_in_calls(users, node.name, node, parameter, is_bound=bool(info.owner))


def constant_kept(model: Inferred, owner: str, attribute: str) -> ast.Constant | None:
    """The constant that an attribute has in all objects of a class; None if there is no such one.

    Only the constructor may assign the attribute, from a parameter that all calls of the class give one constant.
    Nothing may derive from the class, and no settings may name it.
    """
    view, module, found = model.view, model.module, model.module.klass(owner)
    if found is None or "." in owner or not (model.serves_project or _is_closed(model)):
        return None
    bases = {last_name(base) for base in found.node.bases}
    parameter = _kept_parameter(model, found, attribute) if bases <= _PLAIN_BASES else None
    if parameter is None or found.node.decorator_list or view.finds(module.path, _COMPUTED):
        return None
    if _may_be_called(model, owner) or view.settings_name(module.path, owner):
        return None
    others = [user for user in _users(model, attribute) if user is not module]
    if any(user is None or _may_assign(user, attribute) for user in others):
        return None
    made = found.methods["__init__"].node
    assert not isinstance(made, ast.Lambda)
    return _constant_in_calls(_users(model, owner), owner, made, parameter, is_bound=True)


def _is_closed(model: Inferred) -> bool:
    """True if the project alone uses a file: it is a program, or the project is not packaged for others."""
    is_own = model.module.is_program and not model.is_imported
    return is_own or not model.view.is_published(model.module.path)


def _may_be_called(model: Inferred, qualname: str) -> bool:
    """True if code that does not name a definition may call it; a package of the project itself does not count."""
    if model.view.is_published(model.module.path):
        return other_code_may_call(model.view, model.module, qualname)
    return other_code_may_find(model.view, model.module, qualname)


def _kept_parameter(model: Inferred, found: ClassInfo, attribute: str) -> str | None:
    """The parameter of the constructor that an attribute always has in its file; None if there is no such one."""
    made = found.methods.get("__init__")
    if made is None or isinstance(made.node, ast.Lambda):
        return None
    stores = list(_stores(model.module, attribute))
    parent = model.parent(stores[0]) if len(stores) == 1 else None
    if not isinstance(parent, (ast.Assign, ast.AnnAssign)) or model.function(parent) is not made.node:
        return None
    value = parent.value
    if not isinstance(value, ast.Name) or not isinstance(stores[0].value, ast.Name):
        return None
    arguments = made.node.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    is_object = bool(names) and stores[0].value.id == names[0]
    is_kept = [each.how for each in model.symbols.variable(value).bindings] == [How.PARAMETER]
    return value.id if is_object and is_kept and value.id in names else None


def _stores(module: Module, attribute: str) -> Iterable[ast.Attribute]:
    """The places of a file that assign an attribute of this name, of whatever object."""
    for node in module.structure.every(ast.Attribute):
        if node.attr == attribute and not isinstance(node.ctx, ast.Load):
            yield node


def _may_assign(module: Module, attribute: str) -> bool:
    """True if a file assigns an attribute of this name, or has the name as text: `setattr(model, "flag", True)`."""
    texts = (node.value for node in module.structure.every(ast.Constant))
    return any(_stores(module, attribute)) or attribute in texts


def _users(model: Inferred, name: str) -> list[Module | None]:
    """The files whose texts have a name, without tests; None for one that does not parse."""
    view, module = model.view, model.module
    paths = {file.path for file in view.mentioning(name) if not view.is_of_tests(file.path)} | {module.path}
    return [module if path == module.path else view.peek(path) for path in sorted(paths)]


def _constant_in_calls(
    users: Iterable[Module | None],
    name: str,
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    parameter: str,
    *,
    is_bound: bool,
) -> ast.Constant | None:
    """The constant that all calls by a name give to a parameter; None if any gives another or is not understood."""
    calls = [None if user is None else calls_of(user, name) for user in users]
    made = [call for known in calls if known is not None for call in known]
    if None in calls or not made:
        return None
    positional = [each.arg for each in (*node.args.posonlyargs, *node.args.args)][is_bound:]
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
