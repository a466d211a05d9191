"""What is known of one file: values, call targets, heat, structure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflint.findings import Heat
from perflint.semantics.values import UNKNOWN, Value

if TYPE_CHECKING:
    from perflint.semantics.project import Project
    from perflint.semantics.sites import Site
    from perflint.source.text import Source

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Model:
    """The facts about one file. Built by `Model(source, project)`; all answers are total."""

    def __init__(self, source: Source, project: Project) -> None:
        self.source = source
        self.project = project

    def value(self, node: ast.expr) -> Value:
        """What an expression may evaluate to, joined over all times it runs; UNKNOWN if it never does."""
        return UNKNOWN

    def target(self, call: ast.Call) -> str:
        """The full name of what is called, as in `CallSite.target`; empty when unknown."""
        return ""

    def heat(self, node: ast.AST) -> Heat:
        """How often a node runs."""
        return Heat.WARM

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node around a node; None for the module."""
        return None

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first."""
        return iter(())

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function or lambda around a node; None at module or class level."""
        return None

    def sites(self) -> Iterator[Site]:
        """All sites of the file, in source order."""
        return iter(())
