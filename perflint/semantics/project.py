"""The files that belong together: module names, imports, and modules parsed when they are needed."""

from __future__ import annotations

import ast
import os
import sys
import tokenize
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from perflint.semantics.heat.test_files import is_test_file
from perflint.semantics.importers import Importers
from perflint.semantics.interpreter.memory import Knowledge
from perflint.semantics.structure import ClassInfo, FunctionInfo, Structure, scan
from perflint.semantics.values import Value
from perflint.source.text import Source, parse

_OUTSIDE = frozenset({"torch", "numpy", "pandas", "scipy", "PIL", "cv2"}) | sys.stdlib_module_names
"""Packages whose facts are data; their source is never read, even when it lies beside the project."""

_TEXT_IN_MEMORY = 5_000_000
"""Characters of source whose trees are kept; a tree takes about 60 bytes a character."""


class Module:
    """One parsed file of the project."""

    def __init__(self, name: str, path: Path, root: Path, text: str, tree: ast.Module) -> None:
        self.name = name
        self.path = path
        self.root = root
        """The folder that absolute imports start from."""
        self.weight = len(text)
        self.text = hash(text)
        self.tree = tree
        self.is_package = path.name == "__init__.py"
        self.names: dict[str, Value] | None = None
        """The definitions of the module's top level, once it has been run."""
        self.starred: dict[str, Value | None] = {}
        """Names looked for behind `import *` so far."""
        self.resolved: dict[str, Value] = {}
        """The values of imported names, by full name; all modules of one root share them."""
        self.is_run = False
        """Whether the top level has been run to its end."""
        self.constructed: dict[str, list[tuple[tuple[str, Value], ...]]] = {}
        """The arguments of the top level for constructors of classes defined here, by their names in the file."""
        self.closures: dict[tuple[int, int], dict[str, Value]] = {}
        """The names that nested functions see, by the position of the function."""

    @cached_property
    def is_of_tests(self) -> bool:
        """Whether the file belongs to the tests of its project."""
        return is_test_file(self)

    @cached_property
    def structure(self) -> Structure:
        """Functions, classes and parents."""
        return scan(self.tree)

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
        found: dict[str, str] = {}
        for statement in _top_level(self.tree.body):
            if isinstance(statement, ast.ImportFrom):
                base = self.absolute(statement.module, statement.level)
                for alias in statement.names:
                    found[alias.asname or alias.name] = f"{base}.{alias.name}" if base else alias.name
            elif isinstance(statement, ast.Import):
                for alias in statement.names:
                    top = alias.name.split(".", 1)[0]
                    found[alias.asname or top] = alias.name if alias.asname else top
        return found

    @cached_property
    def packages(self) -> frozenset[str]:
        """The packages that the top level imports from."""
        return frozenset(name.partition(".")[0] for name in (*self.imports.values(), *self.stars))

    @cached_property
    def assigned(self) -> frozenset[str]:
        """The names that the top level assigns."""
        return frozenset(
            node.id
            for statement in _top_level(self.tree.body)
            if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )

    @cached_property
    def called(self) -> frozenset[str]:
        """The plain names that are called anywhere in the file."""
        calls = self.structure.nodes.get(ast.Call, ())
        return frozenset(
            call.func.id for call in calls if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        )

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
        """Whether the file does something only when it is run: `if __name__ == "__main__":`."""
        tests = (node.test for node in self.tree.body if isinstance(node, ast.If))
        return any(isinstance(node, ast.Name) and node.id == "__name__" for test in tests for node in ast.walk(test))

    def function(self, line: int, column: int) -> FunctionInfo | None:
        """The function defined at a position."""
        return self.structure.functions.get((line, column))

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


def _top_level(body: list[ast.stmt]) -> Iterable[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try)):
            yield from _top_level(statement.body)
            yield from _top_level(statement.orelse)
            if isinstance(statement, ast.Try):
                for handler in statement.handlers:
                    yield from _top_level(handler.body)


class Project:
    """The modules that the files to be checked belong to or import.

    `paths` are the files to be checked. Imports resolve to files below the folder that
    holds the importing file's top-level package (or script); anything else is outside.
    """

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self.knowledge = Knowledge()
        self._loaded: OrderedDict[str, Module] = OrderedDict()
        self._weight = 0
        self._is_file: dict[Path, bool] = {}
        self._located: dict[tuple[Path, str], Path | None] = {}
        self._keys: dict[Path, str] = {}
        self._owners: dict[str, Path] = {}
        self._broken: set[Path] = set()
        self._origin: Project | None = None
        for path in paths:
            self._key(path.absolute())
        self.checked: Mapping[str, Path] = dict(self._owners)
        """The files to be checked, by the names of their modules."""
        self.importers = Importers(self)

    def afresh(self) -> Project:
        """A project of the same files that has learned nothing of what they mean."""
        other = Project()
        other._is_file, other._located = self._is_file, self._located
        other._keys, other._owners, other.checked = self._keys, self._owners, self.checked
        other.importers = self.importers.for_project(other)
        other._origin = self.origin
        return other

    @property
    def origin(self) -> Project:
        """The project that this one was made from by `afresh`, or itself: both have the same files."""
        return self._origin or self

    @property
    def files(self) -> Mapping[str, Path]:
        """The files that are known so far, by the names of their modules."""
        return self._owners

    def adopt(self, source: Source) -> None:
        """Let a file that was imported before it is checked share the tree made then."""
        module = self._loaded.get(self._keys.get(Path(source.path).absolute(), ""))
        if module is not None and module.text == hash(source.text):
            source.tree = module.tree

    def module_of(self, source: Source) -> Module:
        """The module of a file to be checked. Raises SyntaxError and ValueError as `ast.parse` does."""
        path = Path(source.path).absolute()
        key = self._key(path)
        known = self._loaded.get(key)
        if known is not None and known.tree is source.tree:
            return known
        module = Module(key, path, self._root(path), source.text, source.tree)
        self._keep(module)
        return module

    def find(self, name: str, importer: Module) -> Module | None:
        """A module by the full name that a file of the project uses; None when it is outside."""
        path = self._locate(name, importer.root)
        return None if path is None else self._load(path)

    def loaded(self, key: str) -> Module | None:
        """A module by its own `name`, read again if it was dropped meanwhile."""
        module = self._loaded.get(key)
        if module is not None:
            self._loaded.move_to_end(key)
            return module
        path = self._owners.get(key)
        return None if path is None else self._load(path)

    def _load(self, path: Path) -> Module | None:
        key = self._key(path)
        module = self._loaded.get(key)
        if module is not None:
            self._loaded.move_to_end(key)
            return module
        if path in self._broken:
            return None
        try:
            with tokenize.open(path) as file:
                text = file.read()
            tree = parse(text)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            # What cannot be read tells nothing; it is reported where it is checked itself.
            self._broken.add(path)
            return None
        module = Module(key, path, self._root(path), text, tree)
        self._keep(module)
        return module

    def _keep(self, module: Module) -> None:
        module.resolved = self.knowledge.resolved.setdefault(module.root, {})
        old = self._loaded.pop(module.name, None)
        self._weight += module.weight - (old.weight if old else 0)
        self._loaded[module.name] = module
        while self._weight > _TEXT_IN_MEMORY and len(self._loaded) > 1:
            _, oldest = self._loaded.popitem(last=False)
            self._weight -= oldest.weight

    def _locate(self, name: str, root: Path) -> Path | None:
        known = (root, name)
        if known in self._located:
            return self._located[known]
        found: Path | None = None
        if name and name.split(".", 1)[0] not in _OUTSIDE:
            base = root.joinpath(*name.split("."))
            for candidate in (base / "__init__.py", base.with_name(base.name + ".py")):
                if self._exists(candidate):
                    found = candidate
                    break
        self._located[known] = found
        return found

    def _exists(self, path: Path) -> bool:
        known = self._is_file.get(path)
        if known is None:
            # Not `path.is_file()`: it raises for folders that may not be entered and for names that are too long.
            known = self._is_file[path] = os.path.isfile(path)
        return known

    def _root(self, path: Path) -> Path:
        folder = path.parent
        while self._exists(folder / "__init__.py") and folder.parent != folder:
            folder = folder.parent
        return folder

    def _key(self, path: Path) -> str:
        key = self._keys.get(path)
        if key is None:
            parts = path.relative_to(self._root(path)).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
            # Two scripts of one name in different folders are two modules.
            key = name if name not in self._owners else f"{name}~{len(self._keys)}"
            self._keys[path] = key
            self._owners[key] = path
        return key
