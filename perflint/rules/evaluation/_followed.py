"""The one function of a file that a call runs, if no other code can stand in for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from perflint.rules._methods import is_self_or_cls
from perflint.rules._operators import operators
from perflint.rules.evaluation._scopes import Scope, Survey
from perflint.semantics.memo import once
from perflint.semantics.structure import last_name
from perflint.semantics.values import Function, Instance

_KEEPS_SIGNATURE = operators("gradient", "keeps_signature")


def followed(survey: Survey, call: ast.Call) -> Scope | None:
    """The one function of the file that a call runs; None if it may be another, or a decorator changes it."""
    value = survey.model.value(call.func)
    found = survey.function(value) if isinstance(value, Function) else None
    if found is None or isinstance(found.node, ast.Module) or not isinstance(value, Function):
        return None
    if found.owner is not None and not _is_certain(survey, found, found.owner, _class_asked(survey, call, value)):
        return None
    return found if all(last_name(each) in _KEEPS_SIGNATURE for each in found.node.decorator_list) else None


def _class_asked(survey: Survey, call: ast.Call, method: Function) -> str:
    """The class, by its full name, that an object whose method is called is of, or derives from."""
    own = survey.scope_around(call).klass
    if own is not None and isinstance(call.func, ast.Attribute) and is_self_or_cls(call.func.value):
        return survey.name_of(own)
    return method.receiver.cls if isinstance(method.receiver, Instance) else method.owner


def _is_certain(survey: Survey, method: Scope, owner: ast.ClassDef, asked: str) -> bool:
    """True if no object of a class has another method in place of one, and no attribute of its name is assigned to."""
    info, symbols = survey.klass(survey.name_of(owner)), survey.model.symbols
    return (
        survey.providers(asked, method.name) == {survey.name_of(owner)}
        and info is not None
        and info.node is owner
        and len(symbols.bound(symbols.scope(owner))[method.name].bindings) == 1
        and method.name not in _assigned_attributes(survey)
        and not is_abstract(method)
    )


@once
def _assigned_attributes(survey: Survey) -> Set[str]:
    """The attributes that the file assigns to, by name: `self.note = note`, `setattr(self, "note", note)`."""
    found = {node.attr for node in survey.model.nodes(ast.Attribute) if isinstance(node.ctx, ast.Store)}
    for call in survey.model.nodes(ast.Call):
        if last_name(call) == "setattr" and len(call.args) == 3:
            name = call.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                found.add(name.value)
    return found


def passed(call: ast.Call, function: Scope) -> Iterator[tuple[ast.expr, ast.arg | None]]:
    """The arguments of a call with the parameters that they are bound to, or None if unknown."""
    assert not isinstance(function.node, ast.Module)
    args = function.node.args
    positional = [*args.posonlyargs, *args.args]
    is_static = any(last_name(each) == "staticmethod" for each in function.node.decorator_list)
    if function.owner is not None and not is_static:
        positional = positional[1:]
    by_name: dict[str | None, ast.arg] = {arg.arg: arg for arg in (*positional, *args.kwonlyargs)}
    is_open = False
    for index, given in enumerate(call.args):
        is_open = is_open or isinstance(given, ast.Starred)
        yield given, positional[index] if index < len(positional) and not is_open else None
    for keyword in call.keywords:
        yield keyword.value, by_name.get(keyword.arg)


def is_abstract(function: Scope) -> bool:
    """True if a function is only declared: its body is a docstring, `pass`, `...` or a `raise`."""
    return all(
        isinstance(each, (ast.Pass, ast.Raise)) or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in function.node.body
    )
