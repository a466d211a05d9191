"""Fields of settings that keep their default, since nothing of the project sets them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflint.semantics.binders import parameters
from perflint.semantics.module import Module
from perflint.semantics.structure import last_name

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred

_DECLARES = frozenset({"field", "Field"})
"""Functions that give the default of a field of a class."""


class _Set(Exception):
    """Code may set a field."""


def constant_of_field(model: Inferred, attribute: str) -> ast.Constant | None:
    """The default of a field of settings that is off, and that nothing of the project sets; None for other fields.

    Of several kinds that a program offers, users choose one: a default that is not off says little.
    """
    default = default_of_field(model, attribute)
    return None if default is None or default.value else default


def default_of_field(model: Inferred, attribute: str) -> ast.Constant | None:
    """The default of a field of settings that nothing of the project sets; None for other fields.

    The classes and options of the project that have a field of this name all give it one constant. No code but theirs
    writes the name, except to read the field, and no file of settings or commands contains it with another value.
    """
    view, module = model.view, model.module
    if attribute.startswith("__") or not view.project.is_whole or view.is_published(module.path):
        return None
    spellings = {attribute, attribute.replace("_", "-")}
    files = [file for each in sorted(spellings) for file in view.mentioning(each)]
    paths = {file.path for file in files if not view.is_of_tests(file.path)} | {module.path}
    try:
        found = [each for path in sorted(paths) for each in _declared(view.peek(path), attribute)]
    except _Set:
        return None
    alike = {(type(each.value), repr(each.value)) for each in found}
    if len(alike) != 1 or any(view.settings_change(module.path, each, found[0].value) for each in spellings):
        return None
    return found[0]


def _declared(module: Module | None, attribute: str) -> Iterator[ast.Constant]:
    """The defaults that the classes of a file give a field. Raises _Set if the file may set it."""
    if module is None:
        raise _Set
    every, parents = module.structure.every, module.structure.parents
    for name in every(ast.Name):
        if name.id == attribute:
            yield _default(parents.get(name), parents)
    for each in every(ast.Attribute):
        if each.attr == attribute and not isinstance(each.ctx, ast.Load):
            raise _Set
    for text in every(ast.Constant):
        if isinstance(text.value, str) and text.value.lstrip("-").replace("-", "_") == attribute:
            yield from _option(parents.get(text), text)
    for call in every(ast.Call):
        if any(each.arg == attribute for each in call.keywords):
            raise _Set
    functions = module.structure.functions.values()
    if any(attribute in parameters(info.node) for info in functions):
        raise _Set


def _option(around: ast.AST | None, text: ast.Constant) -> Iterator[ast.Constant]:
    """The default of an option of the command line; nothing for a list of names. Raises _Set for other texts."""
    if isinstance(around, (ast.List, ast.Tuple, ast.Set)):
        return
    if not isinstance(around, ast.Call) or last_name(around) != "add_argument" or text not in around.args:
        raise _Set
    given = {each.arg: each.value for each in around.keywords}
    action, default = given.get("action"), given.get("default")
    if isinstance(action, ast.Constant) and action.value == "store_true" and default is None:
        default = ast.Constant(False)
    if not isinstance(default, ast.Constant):
        raise _Set
    yield default


def _default(statement: ast.AST | None, parents: dict[ast.AST, ast.AST]) -> ast.Constant:
    """The constant that a statement in a class gives a field. Raises _Set for all other uses of its name."""
    if not isinstance(statement, (ast.AnnAssign, ast.Assign)) or not isinstance(parents.get(statement), ast.ClassDef):
        raise _Set
    value = statement.value
    if isinstance(value, ast.Call) and last_name(value) in _DECLARES:
        given = [each.value for each in value.keywords if each.arg == "default"]
        value = given[0] if given else value.args[0] if value.args else None
    if not isinstance(value, ast.Constant):
        raise _Set
    return value
