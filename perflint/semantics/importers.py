"""Which files of a project import a function, and where they use it.

The text of each file is read once, for its imports; a file is parsed only if it imports the function.
"""

from __future__ import annotations

import ast
import re
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from perflint.config.regular import read_regular
from perflint.frozen import dataclass

if TYPE_CHECKING:
    from perflint.semantics.project import Module, Project

# Patterns are compiled when they are first needed: few files ask who imports them.
_IMPORT = (
    r"(?m)^[ \t]*(?:from[ \t]+(?P<dots>\.*)[ \t]*(?P<origin>[\w.]*)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n#]+)"
    r"|import[ \t]+(?P<modules>[^\n#]+))"
)
_FIRST_NAME = r"\s*([\w.]+)"
_WORD = r"\w+"


@dataclass(frozen=True, slots=True)
class Use:
    """A name or attribute in another file that may stand for a function."""

    module: Module
    node: ast.expr


@dataclass(frozen=True, slots=True)
class _File:
    """The full names that a file imports, and all words of its text."""

    key: str
    imports: frozenset[str]
    words: frozenset[str]


class Importers:
    """The imports of the files that are checked together."""

    def __init__(self, project: Project) -> None:
        # The project owns its importers: no circle.
        self._project: Project = weakref.proxy(project)
        self._files: dict[str, _File] = {}

    def for_project(self, project: Project) -> Importers:
        """The same imports, for another project of the same files; each file is read once for both."""
        other = Importers(project)
        other._files = self._files
        return other

    def of(self, module: str, name: str) -> list[str]:
        """The modules, by their keys, that may use a function of another module."""
        found: dict[str, None] = {}
        wanted = [module.split("~")[0]]
        while wanted:
            origin = wanted.pop()
            for file in self._all():
                if file.key in (module, *found) or name not in file.words:
                    continue
                if f"{origin}.{name}" in file.imports or origin in file.imports:
                    found[file.key] = None
                    # It may be imported from there again.
                    wanted.append(file.key.split("~")[0])
        return list(found)

    def saying(self, *words: str) -> frozenset[str]:
        """The modules, by their keys, whose texts have all these words."""
        return frozenset(file.key for file in self._all() if file.words.issuperset(words))

    def uses(self, module: str, name: str) -> Iterator[Use]:
        """The names and attributes in other files that may stand for something of a module."""
        for key in self.of(module, name):
            loaded = self._project.loaded(key)
            if loaded is not None:
                yield from _uses_in(loaded, name)

    def _all(self) -> Iterable[_File]:
        if not self._files:
            self._files.update((key, _read(key, path)) for key, path in self._project.checked.items())
        return self._files.values()


def _uses_in(module: Module, name: str) -> Iterator[Use]:
    for node in module.structure.nodes.get(ast.Name, ()):
        if isinstance(node, ast.Name) and module.imports.get(node.id, node.id).rpartition(".")[2] == name:
            yield Use(module, node)
    for node in module.structure.nodes.get(ast.Attribute, ()):
        if isinstance(node, ast.Attribute) and node.attr == name:
            yield Use(module, node)


def _read(key: str, path: Path) -> _File:
    text = text_of(path)
    return _File(key, frozenset(imported(text, package_of(key, path))), frozenset(re.findall(_WORD, text)))


def text_of(path: Path) -> str:
    """The text of a file of the project; empty if it cannot be read, which is reported when it is checked itself."""
    try:
        return (read_regular(path) or b"").decode("utf-8", "replace")
    except OSError:
        return ""


def package_of(key: str, path: Path) -> str:
    """The full name of the package that a module belongs to, or is."""
    name = key.split("~")[0]
    return name if path.name == "__init__.py" else name.rpartition(".")[0]


def imported(text: str, package: str) -> Iterator[str]:
    """The full names that a text imports, relative ones as seen from `package`."""
    for match in re.finditer(_IMPORT, text):
        if match["modules"]:
            yield from _first_names(match["modules"])
            continue
        origin = match["origin"]
        if match["dots"]:
            parts = package.split(".") if package else []
            origin = ".".join([*parts[: len(parts) - len(match["dots"]) + 1], *([origin] if origin else [])])
        yield origin
        yield from (f"{origin}.{name}" for name in _first_names(match["names"].strip("()")))


def _first_names(text: str) -> Iterator[str]:
    """The names before "as" in a list of imports."""
    yield from (found[1] for part in text.split(",") if (found := re.match(_FIRST_NAME, part)))
