"""What the imports of a file make of its names, read off the tree alone.

The model knows more, but only of the file that is checked and of code that runs; this also
serves for annotations, for branches that never run and for the files around.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from perflint.semantics.structure import children

Import = ast.Import | ast.ImportFrom

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


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
        self._scan(tree)

    def _scan(self, tree: ast.Module) -> None:
        stack: list[tuple[ast.AST, ast.AST]] = [(tree, tree)]
        while stack:
            outer, scope = stack.pop()
            for node in children(outer):
                kind = type(node)
                if kind is ast.Name:
                    if type(node.ctx) is not ast.Load:  # type: ignore[attr-defined]
                        self._others.setdefault(node.id, []).append(scope)  # type: ignore[attr-defined]
                    continue
                if kind is ast.Constant:
                    continue
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    for alias in node.names:
                        binding = _binding(node, alias)
                        self.bound.setdefault(binding.local, []).append(binding)
                name = _bound_by(node)
                if name is not None:
                    self._others.setdefault(name, []).append(scope)
                stack.append((node, node if isinstance(node, _SCOPES) else scope))

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


def _bound_by(node: ast.AST) -> str | None:
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)):
        return node.name
    return None
