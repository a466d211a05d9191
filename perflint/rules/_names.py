"""The full names of a file's names through its imports, from the tree alone.

The model knows more, but only of the file that is checked and of code that runs; this also
serves for annotations, for branches that never run and for the files around.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from perflint.frozen import dataclass
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.structure import Structure

Import = ast.Import | ast.ImportFrom

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Binding:
    """One name that an import statement binds, and the full name that it stands for."""

    statement: Import
    local: str
    full: str


class Names:
    """The full names that the imports of a file, at any depth, bind."""

    def __init__(self, structure: Structure) -> None:
        self.bound: dict[str, list[Binding]] = {}
        for statement in _imports(structure):
            for alias in statement.names:
                binding = _binding(statement, alias)
                self.bound.setdefault(binding.local, []).append(binding)
        self._full: dict[ast.AST, str] = {}
        self._others: dict[str, list[ast.AST | None]] = {}
        """The scopes in which something else binds one of these names; None for the module."""
        for node, name in _stores(structure):
            if name in self.bound:
                self._others.setdefault(name, []).append(_scope(structure, node))

    def full_name(self, node: ast.AST) -> str:
        """The full name that an expression spells; empty where the file leaves a choice."""
        found = self._full.get(node)
        if found is None:
            found = self._full[node] = self._read(node)
        return found

    def _read(self, node: ast.AST) -> str:
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        names = {binding.full for binding in self.bound.get(node.id, ())}
        if len(names) != 1 or any(_is_around(scope, node) for scope in self._others.get(node.id, ())):
            return ""
        return ".".join([names.pop(), *reversed(attributes)])

    def is_rebound(self, local: str) -> bool:
        """True if something other than an import binds an imported name in the module or one of its functions."""
        return any(not isinstance(scope, ast.ClassDef) for scope in self._others.get(local, ()))


@once
def names_in_file(model: Model) -> Names:
    """The names of a file that is checked; its rules ask for them one after the other."""
    return Names(model.module.structure)


def _imports(structure: Structure) -> list[Import]:
    found = [*structure.nodes.get(ast.Import, ()), *structure.nodes.get(ast.ImportFrom, ())]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _stores(structure: Structure) -> Iterator[tuple[ast.AST, str]]:
    """The nodes that bind a name without importing it."""
    nodes: dict[type[ast.AST], list[Any]] = structure.nodes
    for node in nodes.get(ast.Name, ()):
        if type(node.ctx) is not ast.Load:
            yield node, node.id
    for node in nodes.get(ast.arg, ()):
        yield node, node.arg
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler):
        for node in nodes.get(kind, ()):
            if node.name is not None:
                yield node, node.name


def _scope(structure: Structure, node: ast.AST) -> ast.AST | None:
    """The function or class directly around a node."""
    around = structure.parents.get(node)
    while around is not None and not isinstance(around, _SCOPES):
        around = structure.parents.get(around)
    return around


def _is_around(scope: ast.AST | None, node: ast.Name) -> bool:
    """True if what is bound in a scope is what a name means; a class's own names reach no further than its body."""
    if scope is None:
        return True
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return False
    return scope.lineno <= node.lineno <= (scope.end_lineno or 0)


def _binding(statement: Import, alias: ast.alias) -> Binding:
    if isinstance(statement, ast.ImportFrom):
        full = f"{'.' * statement.level}{statement.module or ''}.{alias.name}"
        return Binding(statement, alias.asname or alias.name, full)
    if alias.asname:
        return Binding(statement, alias.asname, alias.name)
    root = alias.name.partition(".")[0]
    return Binding(statement, root, root)
