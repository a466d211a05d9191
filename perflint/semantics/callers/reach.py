"""The files that may call the functions of one file.

They are found by their imports, in a fixed order and within a budget of text, so that checking one file of a large
project stays cheap: their own text, and the files that they import. They do not depend on which function is asked
about, nor when.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from perflint.semantics.callers.summary import FunctionKey
from perflint.semantics.memo import remembered
from perflint.semantics.module import Module
from perflint.semantics.structure import grouped
from perflint.semantics.texts import FileText
from perflint.semantics.view import View

_DEEPEST = 4
"""Files that import each other in a row."""
_LINES_PER_LINE = 3
_LEAST_LINES = 3_000
"""Lines of other files that are run for a file: for each of its own, and at least."""
_LEAST_READ = 36_000
_READ_PER_LINE = 20
_STEP = 5_000
"""Lines of a caller and of all that it imports, also through others: its run reads most of them."""
_MOST_FOLDERS = 4
"""The names of a module, each with one folder more."""
_MOST_DERIVED = 64
"""The classes that derive from one class, and are looked at."""


class Reach:
    """The files that are asked for calls of the functions of a file."""

    def __init__(self, view: View, module: Module) -> None:
        self.view = view
        self.module = module
        self._lines = module.text.count("\n")
        self._budget = self._left = max(_LEAST_LINES, _LINES_PER_LINE * self._lines)
        """Lines of other files that may be run, and those that are left."""
        # In steps, so that files of about the same length ask the same question, also after an edit.
        self._most_read = (_LEAST_READ + _READ_PER_LINE * self._lines) // _STEP * _STEP // 100
        self._files: set[Path] = set()
        """The files that are asked, without the file itself."""

    def importers(self, path: Path) -> tuple[Path, ...]:
        """The files that import the file, or one of those that are asked, and are asked themselves."""
        return self._reached.get(path, ())

    def mentions(self, path: Path, word: str) -> bool:
        """False if the code of a file that is asked does not use a word: annotations and comments call nothing."""
        if path not in self._files or not word:
            return True
        module = self.view.peek(path) if self.view.mentions(path, word) else None
        return module is not None and word in module.named

    def places(self, key: FunctionKey) -> Iterator[tuple[Path, str]]:
        """The files that may call a function, with the word by which they do: its own file, and those that import it.

        A method is also called by the files that import a class that derives from its own, and by those that get an
        object from a file that imports the class.
        """
        owner, _, name = key.qualname.rpartition(".")
        constructs = name in ("__init__", "__post_init__")
        found: dict[tuple[Path, str], None] = {}
        for path, cls in self.family(key.path, owner.rpartition(".")[2]) if owner else ((key.path, ""),):
            # Syntax calls special methods without their names.
            word = cls if constructs else "" if name == "forward" or name.startswith("__") else name
            nearest = (path, *self.importers(path))
            found.update(dict.fromkeys((each, word) for each in nearest))
            if owner and not constructs:
                found.update(dict.fromkeys((each, word) for each in (*self._behind(nearest), *self.handed)))
        yield from found

    def _behind(self, files: tuple[Path, ...]) -> Iterator[Path]:
        """The files that import some files, and those that import them, nearest first."""
        waiting, seen = [*files], set(files)
        for path in waiting:
            new = [each for each in self.importers(path) if each not in seen]
            seen.update(new)
            waiting += new
            yield from new

    @remembered
    def family(self, path: Path, cls: str) -> tuple[tuple[Path, str], ...]:
        """A class, and those that derive from a class of that name in files that import it: their files and names."""
        found = {(path, cls): None}
        waiting = [(path, cls)]
        for place, name in waiting:
            for file in (place, *self.importers(place)):
                new = [(file, each) for each in self._derived(file).get(name, ()) if (file, each) not in found]
                waiting += new[: _MOST_DERIVED - len(waiting)]
                found.update(dict.fromkeys(waiting))
        return tuple(found)

    @remembered
    def _derived(self, path: Path) -> dict[str, list[str]]:
        """The classes of a file by the words among their bases."""
        return grouped((word, name) for name, bases in self.view.bases(path) for word in bases)

    @cached_property
    def users(self) -> tuple[Path, ...]:
        """The file, and all files that are asked because they import it, directly or not."""
        own = self.module.path
        return (own, *self.importers(own), *self._behind((own, *self.importers(own))))

    @cached_property
    def handed(self) -> tuple[Path, ...]:
        """The other files that the users of the file import: they may hand them its objects."""
        found: dict[Path, None] = {}
        waiting = [*self.users[1:]]
        for path in waiting:
            new = dict.fromkeys(each for each in self._imported(path) if each not in found)
            found.update(new)
            # A package gives the definitions of the files that it imports.
            waiting += [each for each in new if each.name == "__init__.py"]
        others = (path for path in found if path not in self._files and path != self.module.path)
        return tuple([path for path in others if path.name != "__init__.py" and self._admits(path)])

    def _imported(self, path: Path) -> Iterator[Path]:
        """The files of the project that a file imports."""
        importer = self.view.peek(path)
        if importer is None:
            return
        # Each name may be that of a module, or of a definition of one.
        names = importer.imports.values()
        for full in dict.fromkeys(full for name in names for full in (name, name.rpartition(".")[0]) if full):
            located = self.view.locate(full, importer)
            if located is not None:
                yield located

    def defining(self, name: str) -> Iterator[Path]:
        """The files that define functions of a name, without tests."""
        for file in self.view.mentioning(name):
            if not self.view.is_of_tests(file.path) and self.view.defines(file.path, name):
                yield file.path

    def naming(self, path: Path, word: str) -> Iterator[Path]:
        """The other files whose code uses a word, nearest first, whether they import the file or not; without tests.

        They have a budget of their own for each word.
        """
        left = self._budget
        files = (file.path for file in self.view.mentioning(word) if not self.view.is_of_tests(file.path))
        for other in sorted((file for file in files if file != path), key=lambda file: _distance(file, path)):
            length = self.view.length(other)
            module = self.view.peek(other) if length <= left and self.view.is_light(other, self._most_read) else None
            if module is not None and word in module.named:
                left -= length
                yield other

    @cached_property
    def _reached(self) -> dict[Path, tuple[Path, ...]]:
        """The importers of the file, and those of each of them in turn."""
        found: dict[Path, tuple[Path, ...]] = {}
        level = [self.module.path]
        for _ in range(_DEEPEST):
            following: list[Path] = []
            for path in level:
                kept: list[Path] = []
                for file in self._candidates(path):
                    if file.path not in self._files and file.path != self.module.path:
                        if not self._admits(file.path):
                            continue
                        following.append(file.path)
                    kept.append(file.path)
                found[path] = tuple(kept)
            level = following
        return found

    def _admits(self, path: Path) -> bool:
        """True if the budget allows another file, which is then asked."""
        length = self.view.length(path)
        if length > self._left or not self.view.is_light(path, self._most_read):
            return False
        self._left -= length
        self._files.add(path)
        return True

    def _candidates(self, path: Path) -> list[FileText]:
        """The files that import a definition of a file, nearest first; without tests, and packages that export it."""
        module = self.view.peek(path)
        found: dict[Path, FileText] = {}
        for spelling in () if module is None else spellings(self.view, module):
            for name in () if module is None else module.definitions:
                found.update((file.path, file) for file in self.view.importers(spelling, name))
        if module is not None and module.root != path.parent:
            # A script imports the files beside it by their names, also in a package.
            files = (file for name in module.definitions for file in self.view.importers(path.stem, name))
            found.update((file.path, file) for file in files if file.path.parent == path.parent)
        others = (file for file in found.values() if file.path != path and not self._only_exports(file.path))
        code = (file for file in others if not self.view.is_of_tests(file.path))
        return sorted(code, key=lambda file: _distance(file.path, path))

    def _only_exports(self, path: Path) -> bool:
        """True for a package without functions of its own: it hands on what it imports, and calls nothing."""
        module = self.view.peek(path) if path.name == "__init__.py" else None
        return module is not None and not module.structure.functions


def spellings(view: View, module: Module) -> Iterator[str]:
    """The names by which files may import a module: folders above its package need no `__init__.py`.

    Code may also put a folder below that on the path.
    """
    name, folder = module.name, module.root
    rest = name.partition(".")[2]
    while rest:
        if view.added(rest) == module.path:
            yield rest
        rest = rest.partition(".")[2]
    for _ in range(_MOST_FOLDERS):
        yield name
        name, folder = f"{folder.name}.{name}", folder.parent


def _distance(path: Path, other: Path) -> tuple[int, Path]:
    """The number of folders between two files; equal distances are in the order of paths."""
    shared = sum(1 for one, two in zip(path.parts, other.parts, strict=False) if one == two)
    return len(path.parts) + len(other.parts) - 2 * shared, path
