"""What the imports of a file make of its names, read off the tree alone.

The model knows more, but only of the file that is checked and of code that runs; this also
serves for annotations, for branches that never run and for the files around.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

Import = ast.Import | ast.ImportFrom


@dataclass(frozen=True, slots=True)
class Binding:
    """One name that an import statement binds, and the full name that it stands for."""

    statement: Import
    local: str
    full: str


class Names:
    """What the imports of a file, at any depth, make of its names."""

    def __init__(self, tree: ast.Module) -> None:
        self.bound: dict[str, list[Binding]] = {}
        self._others: dict[str, list[ast.AST]] = {}
        self._scan(tree, tree)

    def _scan(self, outer: ast.AST, scope: ast.AST) -> None:
        for node in ast.iter_child_nodes(outer):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    binding = _binding(node, alias)
                    self.bound.setdefault(binding.local, []).append(binding)
            for name in _bound_by(node):
                self._others.setdefault(name, []).append(scope)
            inner = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda))
            self._scan(node, node if inner else scope)

    def full_name(self, node: ast.AST) -> str:
        """The full name that an expression spells; empty where the file leaves a choice."""
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
        """Whether something other than an import binds a name in the module or one of its functions."""
        return any(not isinstance(scope, ast.ClassDef) for scope in self._others.get(local, ()))


def _is_around(scope: ast.AST, node: ast.Name) -> bool:
    """Whether what is bound in a scope is what a name means; a class's own names reach no further than its body."""
    if isinstance(scope, ast.Module):
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


def _bound_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or (isinstance(node, ast.ExceptHandler) and node.name):
        yield node.name
