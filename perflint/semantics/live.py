"""Live code: the definitions that a program of the project, its settings or users of its packages may reach.

A definition is live if live code has its name, in a file that imports its module, also through other files. That finds
too many rather than too few: a name may mean something else. Code that looks for definitions by names that it computes
keeps all that it may find.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from perflint.semantics.blocks import Block, Blocks, words_of
from perflint.semantics.memo import remembered
from perflint.semantics.test_files import is_test_file, is_test_path

_LEAST_SHARE = 0.5
"""If less of a project is live, its programs were not found."""
_CLOSED_BASES = frozenset("Module object ABC Generic Protocol NamedTuple Enum Exception".split())
"""Classes of libraries that call few methods of the classes that derive from them."""
_CALLED_BY_TORCH = frozenset("forward extra_repr reset_parameters train eval state_dict load_state_dict".split())
"""Methods that torch itself calls on modules."""
_REPORTS = re.compile(r'"(?:start_?)?line"\s*:\s*\d', re.IGNORECASE)
"""A report of a tool, in JSON, tells where code is. It uses none."""
_PACKAGING = frozenset({"setup.py", "setup.cfg", "pyproject.toml"})
"""The files that make a project one that can be installed."""
_CLASSIFIERS = frozenset({"Programming", "Development", "Intended"})
"""Words of the classifiers by which an index of packages lists one: `Programming Language :: Python`."""


class Code(NamedTuple):
    """A file of Python, for this question."""

    path: Path
    blocks: Blocks

    @property
    def is_of_tests(self) -> bool:
        """True if it is a test, or lies among tests."""
        return is_test_file(self.path, None, lambda: self.blocks.holds_tests)


class _Place(NamedTuple):
    """A block in a file."""

    path: Path
    block: Block

    @property
    def owner(self) -> str:
        """The name of the class around it; empty for the module and what stands on its top level."""
        return self.block.name.rpartition(".")[0]

    @property
    def last(self) -> str:
        """The last part of its name; that of the file for a module."""
        return self.block.name.rpartition(".")[2] or _module_name(self.path)


class Live:
    """The live definitions of some files. `settings` are the texts of files that are not Python, by their paths."""

    def __init__(self, files: Iterable[Code], settings: Iterable[tuple[Path, str]]) -> None:
        self._files = tuple(files)
        self._places = [_Place(file.path, block) for file in self._files for block in file.blocks.blocks]
        self._by_word: dict[str, list[_Place]] = {}
        self._by_file: dict[Path, list[_Place]] = {}
        self._inside: dict[tuple[Path, str], list[_Place]] = {}
        for place in self._places:
            self._by_word.setdefault(place.last, []).append(place)
            self._by_file.setdefault(place.path, []).append(place)
            if place.owner:
                self._inside.setdefault((place.path, place.owner), []).append(place)
        self._settings = tuple(settings)
        self.is_published = self._is_published()
        """True if other projects may use the packages of this one."""
        self._live: set[tuple[Path, str]] = set()
        self._added: set[tuple[Path, int]] = set()
        self._words: set[str] = set()
        self._said: set[tuple[Path | None, str]] = set()
        self._waiting: list[_Place] = []

    def _is_published(self) -> bool:
        """True if the project is packaged for others: with classifiers, or with a documentation that Sphinx makes.

        Many programs are packaged, too, so that their own imports work.
        """
        packaging = [words_of(text) for path, text in self._settings if path.name in _PACKAGING]
        packaging += [file.blocks.words for file in self._files if file.path.name in _PACKAGING]
        is_listed = any(not _CLASSIFIERS.isdisjoint(words) for words in packaging)
        guides = (file.blocks.words for file in self._files if file.path.name == "conf.py")
        return is_listed or (bool(packaging) and any("sphinx" in words for words in guides))

    def has(self, path: Path, name: str) -> bool:
        """True if a definition is live, or if that is not known."""
        return self._found is None or (path, name) in self._found

    @cached_property
    def _found(self) -> set[tuple[Path, str]] | None:
        """The paths and names of the live definitions; None if they are not known."""
        programs = [file for file in self._files if file.blocks.is_program and not file.is_of_tests]
        if not programs:
            return None
        for _, text in self._settings:
            if _REPORTS.search(text) is None:
                self._say(words_of(text), None)
        for file in self._files:
            is_offered = self.is_published and file.path.name == "__init__.py"
            if file in programs or is_offered:
                self._add(self._by_file[file.path][0])
            if is_offered:
                self._say(file.blocks.named, file.path)
        while self._waiting:
            self._follow(self._waiting.pop())
        known = {(place.path, place.block.name) for place in self._places}
        return self._live if len(self._live) > _LEAST_SHARE * len(known) else None

    def _add(self, place: _Place) -> None:
        key = (place.path, place.block.line)
        if key not in self._added:
            self._added.add(key)
            self._live.add((place.path, place.block.name))
            self._waiting.append(place)

    def _say(self, words: Iterable[str], path: Path | None) -> None:
        """Add the definitions with these names: those of files that a file imports, or all, if `path` is None.

        Methods need a live class around them alone.
        """
        self._words.update(words)
        for word in words:
            if (path, word) in self._said:
                continue
            self._said.add((path, word))
            for place in self._by_word.get(word, ()):
                if (place.path, place.owner) in self._live if place.owner else self._may_name(path, place.path):
                    self._add(place)

    def _may_name(self, path: Path | None, other: Path) -> bool:
        """True if a file may use definitions of another one, since it imports it, also through other files."""
        return path is None or path == other or other in self._reached(path)

    @remembered
    def _reached(self, path: Path) -> set[Path]:
        reached, waiting = {path}, [path]
        while waiting:
            new = self._imported(waiting.pop()) - reached
            reached |= new
            waiting += new
        return reached

    @remembered
    def _imported(self, path: Path) -> frozenset[Path]:
        """The files that a file names in imports or strings, and the packages around it."""
        words = (word for word in self._blocks[path].named if word in self._modules)
        named = {each for word in words for each in self._modules[word]}
        packages = {package for folder in path.parents if (package := folder / "__init__.py") in self._by_file}
        return frozenset(named | packages)

    @cached_property
    def _blocks(self) -> dict[Path, Blocks]:
        return {file.path: file.blocks for file in self._files}

    @cached_property
    def _modules(self) -> dict[str, list[Path]]:
        """The files by the last parts of the names of their modules."""
        found: dict[str, list[Path]] = {}
        for path in self._by_file:
            found.setdefault(_module_name(path), []).append(path)
        return found

    def _follow(self, place: _Place) -> None:
        """Add all that a block that has become live may use."""
        path, block = place
        self._say(block.words, path)
        module = self._by_file[path][0]
        self._add(module)
        if not block.name:
            for other in self._imported(path):
                self._add(self._by_file[other][0])
        if not block.name or block.bases is not None:
            for inner in self._by_file[path]:
                if inner.owner == block.name and inner.block.name and inner.block.is_registered:
                    self._add(inner)
        if block.bases is not None:
            self._open(place)
        if block.finds_methods and place.owner:
            self._add_family(place.owner.rpartition(".")[2])
        if block.finds_own:
            self._add_top(path)
        if block.finds_modules or block.finds_in:
            self._search(place)

    def _open(self, place: _Place) -> None:
        """Add the methods of a live class that other code calls without their names, or by names that are live."""
        outside = self._outside_bases(place.block, set())
        is_closed = outside <= _CLOSED_BASES
        for method in self._inside.get((place.path, place.block.name), ()):
            name = method.last
            if (
                not is_closed
                or name in self._words
                or (name.startswith("__") and name.endswith("__"))
                or (name in _CALLED_BY_TORCH and outside)
                or (self.is_published and not name.startswith("_"))
            ):
                self._add(method)

    def _outside_bases(self, block: Block, seen: set[str]) -> set[str]:
        """The bases of a class, also of its bases, that are not of the project."""
        found: set[str] = set()
        for base in block.bases or ():
            classes = [each.block for each in self._by_word.get(base, ()) if each.block.bases is not None]
            if not classes:
                found.add(base)
            elif base not in seen:
                seen.add(base)
                found.update(*(self._outside_bases(each, seen) for each in classes))
        return found

    def _add_family(self, name: str) -> None:
        """Add the methods of the classes of a name, and of those that derive from them."""
        names, waiting = {name}, [name]
        while waiting:
            base = waiting.pop()
            for place in self._places:
                if base in (place.block.bases or ()) and place.last not in names:
                    names.add(place.last)
                    waiting.append(place.last)
        for place in self._places:
            if place.owner and place.owner.rpartition(".")[2] in names:
                self._add(place)

    def _add_top(self, path: Path) -> None:
        """Add a module with all of its top level."""
        for place in self._by_file[path]:
            if not place.owner:
                self._add(place)

    def _search(self, place: _Place) -> None:
        """Add all modules in which a block may look for definitions."""
        block = place.block
        for path in self._by_file:
            folders = {path.parent, *path.parent.parents}
            below = block.finds_modules and (
                place.path.parent in folders or not block.words.isdisjoint(folder.name for folder in folders)
            )
            if (below and not is_test_path(path)) or _module_name(path) in block.finds_in:
                self._add_top(path)


def _module_name(path: Path) -> str:
    return path.parent.name if path.name == "__init__.py" else path.stem
