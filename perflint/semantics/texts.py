"""Searches in the texts of a project's files, which are not parsed: a word answers most questions.

Each question depends on the texts alone, and its answer is sorted by path. It is answered once for each text: an
overlay asks only the texts that it changes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path

from perflint.config.disk import regular_contents
from perflint.frozen import dataclass
from perflint.semantics.blocks import Blocks, blocks_of
from perflint.semantics.memo import remembered

_IMPORT = re.compile(
    r"[ \t]*(?:from[ \t]+(?P<dots>\.*)[ \t]*(?P<origin>[\w.]*)[ \t]+import[ \t]+"
    r"(?P<names>\((?:[^)#]++|#[^\n]*+)*+\)|(?:[^\n#\\]++|\\\n?)++)"
    r"|import[ \t]+(?P<modules>(?:[^\n#\\]++|\\\n?)++))"
)
_BETWEEN = re.compile(r"#[^\n]*|\\\n")
"""Comments and the ends of lines that go on, between the names of an import."""
_FIRST_NAME = re.compile(r"[\w.]+")
_CLASS = r"\bclass\s+(\w+)\s*\(([^)]{1,300})"
"""A class with bases."""
_FEW_QUESTIONS = 20
"""Questions for which the texts are searched, which takes about as long as to read the imports of all files."""
_QUOTED = r"[\"']((?:\w++\.)++\w++)[\"']"
"""`patch("package.module.name")`."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about texts: a method of `FileText` if the first argument is the file, else one of `Texts`."""

    asks: str
    arguments: tuple[str | Path | re.Pattern[str], ...]

    @property
    def file(self) -> Path | None:
        """The file whose text alone the answer depends on; None if it depends on all files."""
        first = self.arguments[0]
        return first if isinstance(first, Path) else None

    @property
    def word(self) -> str | None:
        """The word that files of the answer contain, except `__init__.py` with `import *`; None if they need not."""
        word = self.arguments[1] if self.asks == "importers" else None
        assert word is None or isinstance(word, str)
        return word


class FileText:
    """A file of the project as a text. `name` is the full name of its module."""

    def __init__(self, path: Path, name: str, text: str | None = None) -> None:
        self.path = path
        self.name = name
        self._text = text
        self._matches: dict[re.Pattern[str], bool] = {}

    @cached_property
    def text(self) -> str:
        """Its contents; empty if it cannot be read, which is reported when it is checked itself."""
        if self._text is not None:
            return self._text
        try:
            return (regular_contents(self.path) or b"").decode("utf-8-sig", "replace")
        except OSError:
            return ""

    @property
    def package(self) -> str:
        """The full name of the package that the module belongs to, or is."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @cached_property
    def _statements(self) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        return imported(self.text, self.package)

    @property
    def bound(self) -> frozenset[str]:
        """The full names of what it binds: modules, `module.name` for each name, and `module.*`."""
        return self._statements[1]

    @cached_property
    def kept(self) -> frozenset[str]:
        """Those of `bound` whose names mean them: not those that are imported under other names, and not assigned."""
        others = self.bound - self._statements[2]
        return self._statements[2].union(name for name in others if self._assigns(name.rpartition(".")[2]))

    def _assigns(self, name: str) -> bool:
        return re.search(rf"^[ \t]*{re.escape(name)}[ \t]*[:=,]", self.text, re.MULTILINE) is not None

    @cached_property
    def imports(self) -> frozenset[str]:
        """The same, and the modules from which it imports names, but which no name of it means."""
        return self._statements[0] | self._statements[1]

    @cached_property
    def by_last_name(self) -> dict[str, list[str]]:
        """The full names that it binds by their last parts."""
        found: dict[str, list[str]] = {}
        for name in self.bound:
            found.setdefault(name.rpartition(".")[2], []).append(name)
        return found

    @cached_property
    def last_names(self) -> frozenset[str]:
        """The last two parts of each full name that it imports or has in quotes."""
        names = (*self.imports, *re.findall(_QUOTED, self.text))
        return frozenset(part for name in names for part in name.split(".")[-2:])

    @cached_property
    def blocks(self) -> Blocks:
        """Its functions and classes, with the words that each may use."""
        return blocks_of(self.text)

    @cached_property
    def hundreds(self) -> int:
        """The number of its lines in hundreds, which few edits change."""
        return self.length() // 100

    @cached_property
    def outline(self) -> str:
        """A digest of the name of the module, of all names that the file imports, and of about how long it is."""
        parts = (self.imports, self.bound, self.kept)
        names = "\n".join([self.name, *(name for part in parts for name in ("", *sorted(part))), str(self.hundreds)])
        return hashlib.blake2b(names.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def mentions(self, word: str) -> bool:
        """True if a word occurs in the text."""
        text, at = self.text, -1
        # Many words are asked about once, so that compiling patterns would take longer than searching.
        while (at := text.find(word, at + 1)) >= 0:
            if not (_is_of_word(text[at - 1 : at]) or _is_of_word(text[at + len(word) : at + len(word) + 1])):
                return True
        return False

    def length(self) -> int:
        """The number of its lines."""
        return self.text.count("\n")

    def contains(self, word: str) -> bool:
        """True if a word, or a longer one with it, occurs in the text."""
        return word in self.text

    def holds_tests(self) -> bool:
        """True if it asks for a library of tests, or has a `test_…` and asserts something."""
        return self.blocks.holds_tests

    def defines(self, name: str) -> bool:
        """True if it defines a function or method of a name."""
        return name in self._defined

    @cached_property
    def _defined(self) -> frozenset[str]:
        return frozenset(re.findall(r"\bdef\s+(\w+)", self.text))

    def bases(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Its classes that have bases, with the words among these."""
        found = re.findall(_CLASS, self.text)
        return tuple((name, tuple(dict.fromkeys(re.findall(r"\w+", bases)))) for name, bases in found)

    def finds(self, pattern: re.Pattern[str]) -> bool:
        """True if a regular expression matches somewhere in the text."""
        known = self._matches.get(pattern)
        if known is None:
            known = self._matches[pattern] = pattern.search(self.text) is not None
        return known


class Texts:
    """The texts of the files of a project."""

    def __init__(self, files: Iterable[FileText]) -> None:
        self.files = tuple(sorted(files, key=lambda file: str(file.path)))
        self._users: dict[tuple[str, str], tuple[FileText, ...]] = {}

    def overlay(self, changed: Iterable[FileText]) -> Texts:
        """The same texts, with others for some files or for new ones."""
        files = {file.path: file for file in self.files}
        files.update((file.path, file) for file in changed)
        return Texts(files.values())

    def load(self) -> None:
        """Read all files and their imports now."""
        _ = self._exact, self._below

    def is_connected(self, path: Path) -> bool:
        """True if a file may call functions of others, or they those of the file: one imports the other."""
        file = self.file(path)
        if file is None:
            return False
        return any(start in self._named for name in file.imports for start in _starts(name)) or bool(
            self.around(file.name)
        )

    def file(self, path: Path) -> FileText | None:
        """One of the files by its path."""
        return self._by_path.get(path)

    @remembered
    def matching(self, pattern: re.Pattern[str]) -> tuple[FileText, ...]:
        """The files in which a regular expression matches somewhere."""
        return tuple(file for file in self.files if file.finds(pattern))

    def importers(self, module: str, name: str) -> tuple[FileText, ...]:
        """The files that may use a name of a module, also through other modules that import it."""
        known = self._users.get((module, name))
        if known is None:
            known = self._users[module, name] = importers(module, name, self._importing_of(name))
        return known

    def _importing_of(self, name: str) -> Callable[[str], Iterable[FileText]]:
        """The files that bind a full name, of those that may use another name.

        A few questions do not pay for the imports of all files.
        """
        if self.has_read_imports or len(self._users) >= _FEW_QUESTIONS:
            return self.importing
        some = [
            file for file in self.files if name in file.text or (file.path.name == "__init__.py" and "*" in file.text)
        ]
        return lambda full: [file for file in some if full in file.bound]

    def importing(self, name: str) -> tuple[FileText, ...]:
        """The files that bind a full name, as `import name` or by its parts."""
        return self._exact.get(name, ())

    @property
    def has_read_imports(self) -> bool:
        """True if the imports of all files were read."""
        return "_exact" in self.__dict__

    def mentioning(self, word: str) -> tuple[FileText, ...]:
        """The files whose texts contain a word, or a longer one with it."""
        return tuple(file for file in self.files if word in file.text)

    def around(self, module: str) -> tuple[FileText, ...]:
        """The files that import a module, something of it, or the package that it lies in."""
        found = {file.path: file for file in self._below.get(module, ())}
        package = module.rpartition(".")[0]
        if package:
            found.update((file.path, file) for file in self._below.get(package, ()) if package in file.imports)
        return tuple(file for _, file in sorted(found.items()) if file.name != module)

    def beside(self, path: str, pattern: re.Pattern[str]) -> tuple[FileText, ...]:
        """The files that may run in one process with a file, and in which a regular expression matches."""
        matching = self.matching(pattern)
        together = set(self._together(path)) if matching else set()
        return tuple(file for file in matching if file in together)

    def _together(self, path: str) -> list[FileText]:
        """A file, the files that import it, also through others, and all that these files import."""
        own = self._by_path.get(Path(path))
        above = _closure(() if own is None else (own,), self._importing)
        return _closure(above, self._imported)

    def light(self, path: str, most: str) -> tuple[FileText, ...]:
        """A file if it and all that it imports, also through others, have about so many hundred lines; else none.

        Packages do not count, since a run reads only the names that it needs of them.
        """
        own = self._by_path.get(Path(path))
        return (own,) if own is not None and self._weight(own) <= int(most) else ()

    @remembered
    def _weight(self, own: FileText) -> int:
        """The hundreds of lines of a file and of all that it imports, also through others, without packages."""
        # Paths are slow keys, and many files import the same.
        seen, read = {own}, [own]
        for file in read:
            new = [each for each in self._imported(file) if each not in seen]
            seen.update(new)
            read += [each for each in new if each.path.name != "__init__.py"]
        return sum(file.hundreds for file in read)

    def _importing(self, file: FileText) -> Iterator[FileText]:
        yield from self._below.get(file.name, ())

    @remembered
    def _imported(self, file: FileText) -> tuple[FileText, ...]:
        starts = {start for name in file.imports for start in _starts(name)}
        return tuple({each.path: each for start in starts for each in self._named.get(start, ())}.values())

    def users_first(self, paths: Iterable[Path]) -> list[Path]:
        """Some files, each before those of them whose definitions it imports, as far as these do not import it."""
        files = [file for path in paths if (file := self._by_path.get(path)) is not None]
        wanted, entered, left = set(files), set[FileText](), list[FileText]()
        for start in files:
            stack = [] if start in entered else [(start, iter(self._origins(start)))]
            entered.add(start)
            while stack:
                file, origins = stack[-1]
                following = next((each for each in origins if each in wanted and each not in entered), None)
                if following is None:
                    left.append(file)
                    stack.pop()
                else:
                    entered.add(following)
                    stack.append((following, iter(self._origins(following))))
        return [file.path for file in reversed(left)]

    def _origins(self, file: FileText) -> list[FileText]:
        """The files that define what a file imports, also through packages that import it for their users."""
        found: dict[FileText, None] = {}
        waiting = sorted(file.bound)
        seen = set(waiting)
        for name in waiting:
            origin, _, last = name.rpartition(".")
            files = self._named.get(name) or self._named.get(origin, ())
            found.update((each, None) for each in files if each.path.name != "__init__.py")
            packages = (each for each in files if each.path.name == "__init__.py")
            given = (full for each in packages for part in (last, "*") for full in each.by_last_name.get(part, ()))
            new = sorted(set(given) - seen)
            seen.update(new)
            waiting += new
        return list(found)

    def naming(self, module: str) -> tuple[FileText, ...]:
        """The files that import a module or a package with this last part of its name, or have it in quotes."""
        return self._last.get(module, ())

    @cached_property
    def _by_path(self) -> dict[Path, FileText]:
        return {file.path: file for file in self.files}

    @cached_property
    def _named(self) -> dict[str, tuple[FileText, ...]]:
        """The files by the names of their modules."""
        return _by((file.name, file) for file in self.files)

    @cached_property
    def _exact(self) -> dict[str, tuple[FileText, ...]]:
        """The files by the full names that they bind."""
        return _by((name, file) for file in self.files for name in file.bound)

    @cached_property
    def _below(self) -> dict[str, tuple[FileText, ...]]:
        """The files by the full names that they import, and by the beginnings of these names."""
        return _by((start, file) for file in self.files for name in file.imports for start in _starts(name))

    @cached_property
    def _last(self) -> dict[str, tuple[FileText, ...]]:
        """The files by the last two parts of the names that they import or have in quotes."""
        return _by((name, file) for file in self.files for name in file.last_names)


def importers(module: str, name: str, importing: Callable[[str], Iterable[FileText]]) -> tuple[FileText, ...]:
    """The files that may use a name of a module. `importing` gives the files that import a full name."""
    found: dict[Path, FileText] = {}
    wanted = [module]
    while wanted:
        origin = wanted.pop()
        spelled = [f"{origin}.{name}", origin, *([] if name.startswith("_") else [f"{origin}.*"])]
        for file in (file for full in spelled for file in importing(full)):
            if file.path not in found and file.name != module and _takes(file, name, origin):
                found[file.path] = file
                if not {f"{origin}.*", f"{origin}.{name}", origin}.isdisjoint(file.kept):
                    # It may be imported from there again.
                    wanted.append(file.name)
    return tuple(sorted(found.values(), key=lambda file: file.path))


def is_around(file: FileText, module: str) -> bool:
    """True if a file imports a module, something of it, or the package that it lies in."""
    package = module.rpartition(".")[0]
    inside = any(name == module or name.startswith(f"{module}.") for name in file.imports)
    return file.name != module and (inside or bool(package and package in file.imports))


def uses(file: FileText, name: str, module: str, others: Iterable[FileText]) -> bool:
    """True if a file may use a name of a module, also through other files that may."""
    origins = [module, *(other.name for other in others)]
    return file.name != module and any(_takes(file, name, origin) for origin in origins)


def _takes(file: FileText, name: str, origin: str) -> bool:
    """True if a file imports a module, or a name of it, and mentions the name.

    A package that imports all names of the module gives them to its users, and mentions none.
    """
    gets_all = not name.startswith("_") and f"{origin}.*" in file.bound
    if gets_all and file.path.name == "__init__.py":
        return True
    return (gets_all or f"{origin}.{name}" in file.bound or origin in file.bound) and file.mentions(name)


def _by(pairs: Iterable[tuple[str, FileText]]) -> dict[str, tuple[FileText, ...]]:
    # Paths are slow keys, and the pairs of a file follow each other.
    found: dict[str, list[FileText]] = {}
    for key, file in pairs:
        files = found.setdefault(key, [])
        if not files or files[-1] is not file:
            files.append(file)
    return {key: tuple(files) for key, files in found.items()}


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _closure(files: Iterable[FileText], step: Callable[[FileText], Iterable[FileText]]) -> list[FileText]:
    """Some files, and all that steps from them lead to."""
    found = {file.path: file for file in files}
    waiting = list(found.values())
    while waiting:
        for file in step(waiting.pop()):
            if file.path not in found:
                found[file.path] = file
                waiting.append(file)
    return list(found.values())


def _starts(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition(".")[0]


def imported(text: str, package: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The modules from which a text imports names, the full names of all that it imports, and those without "as".

    Relative names are as seen from `package`.
    """
    origins, found, kept = set[str](), set[str](), set[str]()
    # Searching for the word alone is five times as fast as for statements.
    at = text.find("import")
    while at >= 0:
        match = _IMPORT.match(text, text.rfind("\n", 0, at) + 1)
        # The word may be in a comment behind a statement.
        at = text.find("import", at + 6 if match is None else max(at + 6, match.end()))
        if match is None:
            continue
        dots, origin, names, modules = match.groups()
        if modules:
            new = _first_names(modules)
            found.update(new)
            # The name of a definition in it stays the same.
            kept.update(new)
            continue
        if dots:
            parts = package.split(".") if package else []
            origin = ".".join([*parts[: len(parts) - len(dots) + 1], *([origin] if origin else [])])
        origins.add(origin)
        names = names.strip("() \t")
        listed = {"*": False} if names.startswith("*") else _first_names(names)
        found.update([f"{origin}.{name}" for name in listed])
        kept.update([f"{origin}.{name}" for name, is_renamed in listed.items() if not is_renamed])
    return frozenset(origins), frozenset(found), frozenset(kept)


def _first_names(text: str) -> dict[str, bool]:
    """The names before "as" in a list of imports, and whether each has only other names."""
    if "#" in text or "\\" in text:
        text = _BETWEEN.sub(" ", text)
    found: dict[str, bool] = {}
    for part in text.split(","):
        words = part.split(None, 3)
        name = words[0] if words else ""
        if not name.isidentifier():
            match = _FIRST_NAME.match(name)
            name = "" if match is None else match[0]
        if name:
            is_renamed = words[1:2] == ["as"] and words[2:3] != [name]
            found[name] = found.get(name, True) and is_renamed
    return found
