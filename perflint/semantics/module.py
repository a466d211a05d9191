"""One parsed file, and the facts that follow from its text alone."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from perflint.semantics.binders import imported, own_nodes
from perflint.semantics.scanning import scan
from perflint.semantics.structure import ClassInfo, FunctionInfo, Structure, walk
from perflint.semantics.symbols import Symbols
from perflint.semantics.test_files import holds_tests, is_in_testing, is_test_file
from perflint.source.comments import digest_of_code
from perflint.source.reading import NOTEBOOK

_LITERALS = tuple(getattr(ast, name) for name in ("Constant", "JoinedStr", "TemplateStr") if hasattr(ast, name))


class Module:
    """One parsed file. All its facts follow from its text and its place, so all runs share it; it never changes."""

    def __init__(self, name: str, path: Path, root: Path, text: str, tree: ast.Module) -> None:
        self.name = name
        """The full name, as files below `root` import it."""
        self.path = path
        self.root = root
        """The folder that absolute imports start from."""
        self.text = text
        self.tree = tree
        self.is_package: bool = path.name == "__init__.py"

    def renamed(self, name: str) -> Module:
        """The same file by another name."""
        other = Module(name, self.path, self.root, self.text, self.tree)
        other.structure = self.structure
        return other

    @cached_property
    def is_of_tests(self) -> bool:
        """True if the file is a test as pytest and unittest find them, or lies among tests."""
        return is_test_file(self.path, self.root, lambda: holds_tests(self.structure))

    @cached_property
    def serves_tests(self) -> bool:
        """True if the file belongs to the tests of its project, or holds helpers of tests."""
        return self.is_of_tests or is_in_testing(self.path, self.root)

    @cached_property
    def structure(self) -> Structure:
        """Functions, classes and parents."""
        return scan(self.tree)

    @cached_property
    def code(self) -> str:
        """A digest of the text without comments. Equal digests mean equal trees, with all nodes at equal places."""
        literals = self.structure.every(*_LITERALS)
        return digest_of_code(self.text, (node for node in literals if isinstance(node, ast.expr)))

    @cached_property
    def symbols(self) -> Symbols:
        """Its scopes, and the variables that its names mean."""
        return Symbols(self.tree, self.structure)

    @cached_property
    def definitions(self) -> dict[str, ast.stmt]:
        """The functions and classes of the top level by name, the last one where there are several."""
        found: dict[str, ast.stmt] = {}
        for statement in _top_level(self.tree.body):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found[statement.name] = statement
        return found

    @cached_property
    def imports(self) -> dict[str, str]:
        """The imports of the top level: the full name of each name."""
        statements = (each for each in _top_level(self.tree.body) if isinstance(each, (ast.Import, ast.ImportFrom)))
        return {each.local: self.resolved(each.full) for statement in statements for each in imported(statement)}

    @cached_property
    def packages(self) -> frozenset[str]:
        """The packages that the top level imports from."""
        return frozenset(name.partition(".")[0] for name in (*self.imports.values(), *self.stars))

    @cached_property
    def beside(self) -> Path | None:
        """The folder of the file, if its imports may also start there: inside a package, as a script is run.

        None if the file is not in a package, imports as a part of one (`from .layers import Block`), or is a test.
        """
        folder = self.path.parent
        if folder == self.root or self.is_package or self.serves_tests:
            return None
        package = self.name.partition(".")[0]
        imports = self.structure.every(ast.Import, ast.ImportFrom)
        return None if any(_is_of_package(each, package) for each in imports) else folder

    @cached_property
    def calls_at(self) -> Mapping[tuple[int, int], list[ast.Call]]:
        """The calls by the line and column at which they begin: two for `f()()`."""
        found: dict[tuple[int, int], list[ast.Call]] = {}
        for node in self.structure.every(ast.Call):
            found.setdefault((node.lineno, node.col_offset), []).append(node)
        return found

    @cached_property
    def assigned(self) -> Mapping[str, int]:
        """The names that the top level assigns, and the number of places that do. Small, since it serves imports."""
        stores = (node for node in own_nodes(self.tree) if isinstance(node, ast.Name))
        return Counter(node.id for node in stores if isinstance(node.ctx, ast.Store))

    @cached_property
    def constants(self) -> dict[str, ast.Constant]:
        """The literals of the names that the top level assigns once, in no block, and to a literal."""
        return {
            target.id: statement.value
            for statement in self.tree.body
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
            for target in statement.targets
            if isinstance(target, ast.Name) and self.assigned[target.id] == 1
        }

    @cached_property
    def called(self) -> frozenset[str]:
        """The plain names that are called anywhere in the file."""
        return frozenset(call.func.id for call in self.structure.every(ast.Call) if isinstance(call.func, ast.Name))

    @cached_property
    def named(self) -> frozenset[str]:
        """The words by which the code of the file may call functions of others: names, attributes, and texts.

        Annotations do not count, unless the file asks for the `type` of an object that they declare.
        """
        every = self.structure.every
        annotations = () if "type" in self.called else _annotations(self.structure)
        ignored = {part for each in annotations for part in walk(each)}
        found = {node.attr for node in every(ast.Attribute)}
        texts = (node.value for node in every(ast.Constant) if isinstance(node.value, str) and node not in ignored)
        found.update(text.rpartition(".")[2] for text in texts)
        names = (node for node in every(ast.Name) if isinstance(node.ctx, ast.Load) and node not in ignored)
        found.update(node.id for node in names)
        # `from ops import read as r`
        aliases = (alias for node in every(ast.ImportFrom) for alias in node.names)
        found.update(alias.name for alias in aliases if alias.asname)
        return frozenset(found)

    @cached_property
    def stars(self) -> list[str]:
        """The modules whose names the top level takes over by `import *`."""
        return [
            self.absolute(statement.module, statement.level)
            for statement in _top_level(self.tree.body)
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*"
        ]

    @cached_property
    def is_program(self) -> bool:
        """True if the file does something only when it is run: `if __name__ == "__main__":`, or a notebook."""
        if self.path.suffix == NOTEBOOK:
            return True
        tests = (node.test for node in self.tree.body if isinstance(node, ast.If))
        return any(isinstance(node, ast.Name) and node.id == "__name__" for test in tests for node in ast.walk(test))

    def function(self, line: int, column: int) -> FunctionInfo | None:
        """The function defined at a position."""
        return self.structure.functions.get((line, column))

    def defined_by(self, node: ast.AST | None) -> FunctionInfo | None:
        """The function that a node defines; None for nodes that define none, and for None."""
        return self.function(getattr(node, "lineno", 0), getattr(node, "col_offset", 0))

    def function_at(self, line: int) -> str | None:
        """The qualified name of the innermost function with a line; None outside of functions."""
        index = bisect_right(self._defined, line, key=lambda info: info.node.lineno)
        found = self._defined[index - 1] if index else None
        while found is not None and (found.node.end_lineno or found.node.lineno) < line:
            found = found.outer
        return None if found is None else found.qualname

    @cached_property
    def _defined(self) -> list[FunctionInfo]:
        """The functions with names, by their lines."""
        named = (info for info in self.structure.functions.values() if not isinstance(info.node, ast.Lambda))
        return sorted(named, key=lambda info: info.node.lineno)

    def named_function(self, qualname: str) -> FunctionInfo | None:
        """A function by its qualified name in this file, the first one where there are several."""
        return self._by_qualname.get(qualname)

    @cached_property
    def _by_qualname(self) -> dict[str, FunctionInfo]:
        return {info.qualname: info for info in reversed(self.structure.functions.values())}

    def klass(self, qualname: str) -> ClassInfo | None:
        """A class by its qualified name in this file."""
        return self.structure.classes.get(qualname)

    def absolute(self, target: str | None, level: int) -> str:
        """The full name that `from <dots><target> import` means in this module."""
        if level == 0:
            return target or ""
        parts = self.name.split("~")[0].split(".")
        keep = len(parts) - level + (1 if self.is_package else 0)
        return ".".join([*parts[: max(keep, 0)], *([target] if target else [])])

    def resolved(self, full: str) -> str:
        """The full name that an import of this module spells with a dot in front for each level."""
        name = full.lstrip(".")
        return self.absolute(name, len(full) - len(name))

    def full_name(self, path: str) -> str:
        """The full name of a path by the first import of its root, at any depth; else that of a name of this module."""
        root, dot, rest = path.partition(".")
        imports = self.symbols.imported.get(root)
        return f"{self.resolved(imports[0].full)}{dot}{rest}" if imports else f"{self.name}.{path}"


def _annotations(structure: Structure) -> Iterable[ast.expr]:
    kinds = (ast.arg, ast.AnnAssign, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in structure.every(*kinds):
        found = getattr(node, "annotation", None) or getattr(node, "returns", None)
        if isinstance(found, ast.expr):
            yield found


def _top_level(body: list[ast.stmt]) -> Iterable[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try)):
            yield from _top_level(statement.body)
            yield from _top_level(statement.orelse)
            if isinstance(statement, ast.Try):
                for handler in statement.handlers:
                    yield from _top_level(handler.body)


def _is_of_package(statement: ast.AST, package: str) -> bool:
    """True for a relative import, and for one from a package."""
    if isinstance(statement, ast.ImportFrom) and statement.level:
        return True
    names = imported(statement) if isinstance(statement, (ast.Import, ast.ImportFrom)) else ()
    return any(each.full.partition(".")[0] == package for each in names)
