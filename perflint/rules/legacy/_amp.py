"""Where a file refers to the AMP names of `torch.cuda.amp` and `torch.cpu.amp`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_MENTIONED = re.compile(r"\b(?:cuda|cpu)(?:\.amp\b|\s+import\b[^;]*?\bamp\b)")
_DEPRECATED = re.compile(r"torch\.(cuda|cpu)\.amp(?:\.autocast_mode|\.grad_scaler)?\.(\w+)")
_MEMBERS = {
    "cuda": frozenset({"autocast", "GradScaler", "custom_fwd", "custom_bwd"}),
    "cpu": frozenset({"autocast", "GradScaler"}),
}
_MODERN = re.compile(r"torch\.autocast|torch\.amp\.\w+")

Import = ast.Import | ast.ImportFrom


@dataclass(frozen=True, slots=True)
class Binding:
    """One name that an import statement binds, and the full name that it stands for."""

    statement: Import
    local: str
    full: str


@dataclass(frozen=True, slots=True)
class Reference:
    """One expression that names a deprecated class or function.

    `member` is "autocast", "GradScaler", "custom_fwd" or "custom_bwd", `device` "cuda" or "cpu".
    """

    node: ast.Name | ast.Attribute
    device: str
    member: str

    @property
    def root(self) -> ast.Name:
        """The name that the expression starts with."""
        node: ast.expr = self.node
        while isinstance(node, ast.Attribute):
            node = node.value
        assert isinstance(node, ast.Name)
        return node

    @property
    def modern(self) -> str:
        """The full name to use instead."""
        return f"torch.amp.{self.member}"


def mentions_deprecated(text: str) -> bool:
    """Whether a file may refer to a deprecated name: a cheap look before any walk."""
    return "amp" in text and _MENTIONED.search(text) is not None


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
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name


def references(tree: ast.Module, names: Names) -> Iterator[Reference]:
    """The references to deprecated names, in no particular order."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            match = _DEPRECATED.fullmatch(names.full_name(node))
            if match and match[2] in _MEMBERS[match[1]]:
                yield Reference(node, match[1], match[2])


def offers_modern(nodes: Iterable[ast.AST], device: str, names: Names) -> bool:
    """Whether some code uses today's AMP for `device`, or for one that it is told."""
    for root in nodes:
        for node in ast.walk(root):
            if isinstance(node, ast.Call) and _MODERN.fullmatch(names.full_name(node.func)):
                if _device_type(node) in (device, None):
                    return True
    return False


def _device_type(call: ast.Call) -> str | None:
    """The device type that a call of today's AMP names; None where it is no literal."""
    given = [keyword.value for keyword in call.keywords if keyword.arg in ("device_type", "device")] or call.args[:1]
    if given and isinstance(given[0], ast.Constant) and isinstance(given[0].value, str):
        return given[0].value
    return None
