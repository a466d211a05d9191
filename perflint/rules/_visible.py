"""The code that can see a plain name: only the function that binds it, or other functions and files as well."""

from __future__ import annotations

import ast

from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name
from perflint.semantics.symbols import Scope

_READS_ALL = frozenset({"locals", "vars", "eval", "exec"})
"""Calls that may read any local name."""


def is_private(model: Model, name: ast.Name | ast.arg) -> bool:
    """True if a name belongs to the function around it, and nothing outside of that function, or nested in it, sees it.

    Names of modules and classes, and names that are declared `global` or `nonlocal`, are not private.
    """
    variable = model.symbols.variable(name)
    return variable.is_private and variable.scope.frame not in _open_scopes(model)


def is_local(model: Model, name: ast.Name | ast.arg) -> bool:
    """True if a name is private, or one of the file's top level that no function or class of the file mentions.

    While the statements around such a name run, no other code of the file sees it.
    """
    variable, module = model.symbols.variable(name), model.symbols.module
    if variable.scope.frame is module:
        return all(scope.frame is module for scope in variable.seen_in)
    return is_private(model, name)


@once
def _open_scopes(model: Model) -> set[Scope]:
    """The functions that read their local names by other means than their names."""
    calls = [
        call for call in model.nodes(ast.Call) if isinstance(call.func, ast.Name) and last_name(call) in _READS_ALL
    ]
    return {model.symbols.scope_around(call).frame for call in calls if last_name(call) in _READS_ALL}
