"""The calls that other files make of the functions of one file.

The files that are asked are found by their imports, in a fixed order and within a budget of text, so that checking one
file of a large project stays cheap. They do not depend on which function is asked about, nor when.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from perflint.findings import Heat
from perflint.frozen import dataclass
from perflint.semantics.callers.adopted import adopted
from perflint.semantics.callers.summary import Call, FunctionKey, Summary
from perflint.semantics.callers.uses import is_given_away, may_read_method, only_calls, reads_by_name
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.project import Module
from perflint.semantics.structure import FunctionInfo
from perflint.semantics.test_files import is_test_path
from perflint.semantics.texts import FileText
from perflint.semantics.view import View

_DEEPEST = 4
"""Files that import each other in a row."""
_TEXT_PER_CHARACTER = 3
_MOST_FOLDERS = 4
"""The names of a module, each with one folder more."""
_LEAST_TEXT = 60_000
"""Characters of other files that are run for a file: for each of its own, and at least."""


_MOST_CALLERS = 32
"""Functions that lead to one, and are looked at."""
_MOST_DERIVED = 64
"""The classes that derive from one class, and are looked at."""
_CLASS = r"\bclass\s+(\w+)\s*\(([^)]{1,300})"
"""A class with bases, in a text."""


@dataclass(frozen=True, slots=True)
class Chain:
    """How often other files call a function, and the calls that show it, the nearest first."""

    heat: Heat
    calls: tuple[Call, ...]

    def places(self, path: Path) -> list[str]:
        """The calls as `file:line`, the files relative to the folder that they share with a file."""
        return [f"{_relative(call.path, path)}:{call.line}" for call in self.calls]


class Callers:
    """The callers in other files of the functions of one file."""

    def __init__(self, view: View, module: Module, summary_of: Callable[[Path], Summary | None]) -> None:
        self._view = view
        self._module = module
        self._summary_of = summary_of
        self._files: dict[Path, FileText] = {}
        """The files that are asked."""
        self._summaries: dict[Path, Summary | None] = {}
        self._chains: dict[FunctionKey, Chain | None] = {}
        self._bases: dict[Path, dict[str, list[str]]] = {}
        self._families: dict[tuple[Path, str], tuple[tuple[Path, str], ...]] = {}

    def key(self, info: FunctionInfo) -> FunctionKey:
        """The key of a function of the file."""
        return FunctionKey(self._module.path, info.qualname)

    def arguments(self, info: FunctionInfo) -> list[Arguments]:
        """The arguments that the files which import a function pass to it, as values of this run."""
        return [adopted(self._view, summary, call.arguments) for call, summary in self._calls(info) if call.arguments]

    def passing(self, info: FunctionInfo) -> list[Call]:
        """The calls in other files that pass arguments to a function."""
        return [call for call, _ in self._calls(info) if call.arguments]

    def _calls(self, info: FunctionInfo) -> Iterator[tuple[Call, Summary]]:
        if info.outer is not None:
            return
        key = self.key(info)
        for path, word in self._places(key):
            summary = self._summary(path, word) if path != key.path else None
            if summary is not None:
                yield from ((call, summary) for call in summary.calls.get(key, ()))

    def chain(self, info: FunctionInfo) -> Chain | None:
        """How often other files call a function; None if no other file is known to call it.

        HOT if code that runs each step leads to it. COLD if all calls of the project are known and none of them runs
        often.
        """
        if info.outer is not None:
            return None
        key = self.key(info)
        if key not in self._chains:
            self._chains[key] = self._found(key)
        return self._chains[key]

    def _found(self, key: FunctionKey) -> Chain | None:
        waiting: list[tuple[FunctionKey, tuple[Call, ...]]] = [(key, ())]
        seen, first, is_cold = {key}, tuple[Call, ...](), bool(self._reach.get(key.path))
        for function, behind in waiting:
            calls = list(self._of(function))
            is_cold = is_cold and bool(calls) and self._are_all(function, calls)
            for call in calls:
                # How often the file itself calls the function is asked of its model, which knows more.
                is_own = function == key and call.path == key.path
                if call.heat is Heat.HOT and not is_own:
                    return Chain(Heat.HOT, (*behind, call))
                is_cold = is_cold and call.heat is not Heat.HOT
                first = first or (() if is_own else (call,))
                if call.heat is Heat.WARM:
                    is_cold = is_cold and call.caller is not None
                    # Other files must import this one to lead to its own calls.
                    leads = not is_own or bool(self._reach.get(key.path))
                    is_cold = is_cold and leads and len(waiting) < _MOST_CALLERS
                    if leads and len(waiting) < _MOST_CALLERS and call.caller is not None and call.caller not in seen:
                        seen.add(call.caller)
                        waiting.append((call.caller, (*behind, call)))
        if not first:
            return None
        return Chain(Heat.COLD if is_cold else Heat.WARM, first)

    def _of(self, function: FunctionKey) -> Iterator[Call]:
        """The calls of a function, or of a method that it overrides, in its own file and in those that import it."""
        own = self._summary_at(function.path)
        overridden = own.overrides.get(function, ()) if own is not None else ()
        for key in (function, *overridden):
            for path, word in self._places(key):
                summary = self._summary(path, word)
                yield from summary.calls.get(key, ()) if summary is not None else ()

    def _places(self, key: FunctionKey) -> Iterator[tuple[Path, str]]:
        """The files that may call a function, with the word by which they do: its own file, and those that import it.

        A method is also called by the files that import a class that derives from its own.
        """
        owner, _, name = key.qualname.rpartition(".")
        constructs = name in ("__init__", "__post_init__")
        found: dict[tuple[Path, str], None] = {}
        for path, cls in self._family(key.path, owner.rpartition(".")[2]) if owner else ((key.path, ""),):
            word = cls if constructs else name if name not in ("forward", "__call__") else ""
            found.update(dict.fromkeys((each, word) for each in (path, *self._reach.get(path, ()))))
        yield from found

    def _family(self, path: Path, cls: str) -> tuple[tuple[Path, str], ...]:
        """A class, and those that derive from a class of that name in files that import it: their files and names."""
        known = self._families.get((path, cls))
        if known is None:
            found = {(path, cls): None}
            waiting = [(path, cls)]
            for place, name in waiting:
                for file in (place, *self._reach.get(place, ())):
                    new = [(file, each) for each in self._derived(file).get(name, ()) if (file, each) not in found]
                    waiting += new[: _MOST_DERIVED - len(waiting)]
                    found.update(dict.fromkeys(waiting))
            known = self._families[path, cls] = tuple(found)
        return known

    def _derived(self, path: Path) -> dict[str, list[str]]:
        """The classes of a file by the words among their bases."""
        known = self._bases.get(path)
        if known is None:
            known = self._bases[path] = {}
            for name, bases in re.findall(_CLASS, self._text(path)):
                for word in dict.fromkeys(re.findall(r"\w+", bases)):
                    known.setdefault(word, []).append(name)
        return known

    def _text(self, path: Path) -> str:
        """The text of a file that is asked."""
        file = self._files.get(path)
        module = self._view.peek(path) if file is None else None
        return self._view.text(file) if file is not None else "" if module is None else module.text

    def _are_all(self, function: FunctionKey, calls: list[Call]) -> bool:
        """True if the calls are all that the project makes of a function, and it is made for the project alone."""
        name = function.qualname.rpartition(".")[2]
        if not self._view.project.is_whole or name.startswith("__") or self._is_exported(function):
            return False
        lines: dict[Path, set[int]] = {function.path: set()}
        for call in calls:
            lines.setdefault(call.path, set()).add(call.line)
        files = [file.path for file in self._view.mentioning(name) if not is_test_path(file.path)]
        return all(path in lines for path in files) and not self._may_be_given_away(function, name, lines)

    def _may_be_given_away(self, function: FunctionKey, name: str, lines: Mapping[Path, set[int]]) -> bool:
        """True if other code than the callers, on these lines, may get a function and call it."""
        module, summary = self._view.peek(function.path), self._summary_at(function.path)
        if module is None or summary is None or is_given_away(module, function.qualname) or reads_by_name(module, ""):
            return True
        owner = function.qualname.rpartition(".")[0]
        if owner in summary.foreign and not name.startswith("_"):
            return True
        uses = [(other, kept) for path, kept in lines.items() if (other := self._view.peek(path)) is not None]
        if not all(only_calls(other, name, kept) for other, kept in uses):
            return True
        if owner and any(may_read_method(other, name) for other, _ in uses):
            return True
        last = module.name.rpartition(".")[2]
        around = (self._view.peek(file.path) for file in self._view.around(module.name) if not is_test_path(file.path))
        return any(other is not None and reads_by_name(other, last) for other in around)

    def _is_exported(self, function: FunctionKey) -> bool:
        """True if a package takes a function over for its users."""
        module = self._view.peek(function.path)
        if module is None:
            return True
        top = function.qualname.partition(".")[0]
        return any(file.path.name == "__init__.py" for file in self._view.importers(module.name, top))

    def _summary(self, path: Path, word: str) -> Summary | None:
        """The summary of a file, if it mentions a function at all."""
        return self._summary_at(path) if path not in self._files or word in self._text(path) else None

    def _summary_at(self, path: Path) -> Summary | None:
        if path not in self._summaries:
            found = self._summaries[path] = self._summary_of(path)
            if found is not None:
                self._view.rests_on(found.record)
        return self._summaries[path]

    @cached_property
    def _reach(self) -> dict[Path, tuple[Path, ...]]:
        """The files that may call the functions of a file, for the file itself and those files in turn."""
        left = max(_LEAST_TEXT, _TEXT_PER_CHARACTER * len(self._module.text))
        found: dict[Path, tuple[Path, ...]] = {}
        level = [self._module.path]
        for _ in range(_DEEPEST):
            following: list[Path] = []
            for path in level:
                kept: list[Path] = []
                for file in self._importers(path):
                    if file.path not in self._files and file.path != self._module.path:
                        if len(file.text) > left:
                            continue
                        left -= len(file.text)
                        self._files[file.path] = file
                        following.append(file.path)
                    kept.append(file.path)
                found[path] = tuple(kept)
            level = following
        return found

    def _importers(self, path: Path) -> list[FileText]:
        """The files that import a definition of a file, nearest first; without tests, and packages that export it."""
        module = self._view.peek(path)
        found: dict[Path, FileText] = {}
        for spelling in () if module is None else _spellings(module):
            for name in () if module is None else module.definitions:
                found.update((file.path, file) for file in self._view.importers(spelling, name))
        code = (file for file in found.values() if file.path.name != "__init__.py" and not is_test_path(file.path))
        return sorted((file for file in code if file.path != path), key=lambda file: _distance(file.path, path))


def _spellings(module: Module) -> Iterator[str]:
    """The names by which files may import a module: folders above its package need no `__init__.py`."""
    name, folder = module.name, module.root
    for _ in range(_MOST_FOLDERS):
        yield name
        name, folder = f"{folder.name}.{name}", folder.parent


def _relative(path: Path, other: Path) -> str:
    """A path without the folders that it shares with another one."""
    shared = sum(1 for one, two in zip(path.parts[:-1], other.parts[:-1], strict=False) if one == two)
    return "/".join(path.parts[shared:])


def _distance(path: Path, other: Path) -> tuple[int, Path]:
    """The number of folders between two files; equal distances are in the order of paths."""
    shared = sum(1 for one, two in zip(path.parts, other.parts, strict=False) if one == two)
    return len(path.parts) + len(other.parts) - 2 * shared, path
