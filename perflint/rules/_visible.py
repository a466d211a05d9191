"""Who can see a plain name: the function that binds it alone, or other functions and files as well."""

from __future__ import annotations

import ast
from dataclasses import field

from perflint.frozen import dataclass
from perflint.semantics.memo import once
from perflint.semantics.model import FunctionNode, Model
from perflint.semantics.structure import last_name, walk

_READS_ALL = frozenset({"locals", "vars", "eval", "exec"})
"""Calls that may read any local name."""


@dataclass(slots=True)
class _Names:
    """The plain names of one function, without those of the functions in it."""

    bound: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    """Names that it declares `global` or `nonlocal`."""
    used: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)
    """Names of it that functions or classes in it use."""
    is_open: bool = False
    """True if it reads its local names by other means than their names."""

    @property
    def free(self) -> set[str]:
        """The names that belong to what is around the function."""
        return ((self.used | self.inner) - self.bound) | self.declared


@dataclass(slots=True)
class _File:
    """The names of all functions of a file, and those of its top level that functions and classes mention."""

    by_function: dict[FunctionNode, _Names]
    mentioned: set[str]


def is_private(model: Model, name: ast.Name | ast.arg) -> bool:
    """True if a name belongs to the function around it, and nothing outside of that function, or nested in it, sees it.

    Names of modules and classes, and names that are declared `global` or `nonlocal`, are not private.
    """
    function = model.function(name)
    names = None if function is None else _names_of(model).by_function.get(function)
    if names is None or names.is_open:
        return False
    spelled = _spelled(name)
    return spelled in names.bound and spelled not in names.declared and spelled not in names.inner


def is_local(model: Model, name: ast.Name | ast.arg) -> bool:
    """True if a name is private, or one of the file's top level that no function or class of the file mentions.

    While the statements around such a name run, no other code of the file sees it.
    """
    if model.function(name) is not None:
        return is_private(model, name)
    in_class = any(isinstance(outer, ast.ClassDef) for outer in model.ancestors(name))
    return not in_class and _spelled(name) not in _names_of(model).mentioned


def _spelled(name: ast.Name | ast.arg) -> str:
    return name.id if isinstance(name, ast.Name) else name.arg


@once
def _names_of(model: Model) -> _File:
    found: dict[FunctionNode, _Names] = {}
    for info in model.module.structure.functions.values():
        given = info.node.args
        parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        found[info.node] = _Names(bound={each.arg for each in parameters if each is not None})
    for name in model.nodes(ast.Name):
        own = _of(model, found, name)
        if own is not None:
            (own.used if isinstance(name.ctx, ast.Load) else own.bound).add(name.id)
    binders: list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = [
        *model.nodes(ast.FunctionDef),
        *model.nodes(ast.AsyncFunctionDef),
        *model.nodes(ast.ClassDef),
    ]
    for binder in binders:
        own = _of(model, found, binder)
        if own is not None:
            own.bound.add(binder.name)
            if isinstance(binder, ast.ClassDef):
                own.inner |= {part.id for part in walk(binder) if isinstance(part, ast.Name)}
    _note_declarations(model, found)
    mentioned: set[str] = set()
    for definition in model.nodes(ast.ClassDef):
        mentioned |= {part.id for part in walk(definition) if isinstance(part, ast.Name)}
    # Inner functions come after those around them.
    for node in reversed(found):
        outer = _of(model, found, node)
        if outer is not None:
            outer.inner |= found[node].free
        else:
            mentioned |= found[node].free
    return _File(found, mentioned)


def _note_declarations(model: Model, found: dict[FunctionNode, _Names]) -> None:
    declarations: list[ast.Global | ast.Nonlocal] = [*model.nodes(ast.Global), *model.nodes(ast.Nonlocal)]
    for statement in declarations:
        own = _of(model, found, statement)
        if own is not None:
            own.declared.update(statement.names)
            own.bound.difference_update(statement.names)
    for call in model.nodes(ast.Call):
        own = _of(model, found, call) if last_name(call) in _READS_ALL else None
        if own is not None and isinstance(call.func, ast.Name):
            own.is_open = True


def _of(model: Model, found: dict[FunctionNode, _Names], node: ast.AST) -> _Names | None:
    function = model.function(node)
    return None if function is None else found.get(function)
