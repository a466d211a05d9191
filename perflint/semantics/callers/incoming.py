"""The calls that other files make of the functions of one file.

The files that are asked are found by their imports, in a fixed order and within a budget of text, so that checking one
file of a large project stays cheap. They do not depend on which function is asked about, nor when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

from perflint.findings import Heat
from perflint.frozen import dataclass
from perflint.semantics.callers.adopted import adopted
from perflint.semantics.callers.summary import Call, FunctionKey, Summary
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
        for path in self._reach.get(self._module.path, ()):
            summary = self._summary(path, key)
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
        seen, first, is_cold = {key}, tuple[Call, ...](), True
        for function, behind in waiting:
            calls = [call for call in self._of(function) if function != key or call.path != key.path]
            is_cold = is_cold and bool(calls) and self._are_all(function, calls)
            for call in calls:
                if call.heat is Heat.HOT:
                    return Chain(Heat.HOT, (*behind, call))
                first = first or (call,)
                if call.heat is Heat.WARM:
                    is_cold = is_cold and call.caller is not None
                    if call.caller is not None and call.caller not in seen:
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
            for path in (key.path, *self._reach.get(key.path, ())):
                summary = self._summary(path, key)
                yield from summary.calls.get(key, ()) if summary is not None else ()

    def _are_all(self, function: FunctionKey, calls: list[Call]) -> bool:
        """True if the calls are all that the project makes of a function, and it is made for the project alone."""
        name = function.qualname.rpartition(".")[2]
        if not self._view.project.is_whole or name.startswith("__") or self._is_exported(function):
            return False
        known = {call.path for call in calls} | {function.path}
        others = (file for file in self._view.mentioning(name) if not is_test_path(file.path))
        return all(file.path in known for file in others)

    def _is_exported(self, function: FunctionKey) -> bool:
        """True if a package takes a function over for its users."""
        module = self._view.peek(function.path)
        if module is None:
            return True
        top = function.qualname.partition(".")[0]
        return any(file.path.name == "__init__.py" for file in self._view.importers(module.name, top))

    def _summary(self, path: Path, function: FunctionKey) -> Summary | None:
        """The summary of a file, if it mentions a function at all."""
        owner, _, name = function.qualname.rpartition(".")
        word = {"__init__": owner.rpartition(".")[2], "forward": "", "__call__": ""}.get(name, name)
        file = self._files.get(path)
        return self._summary_at(path) if file is None or word in file.text else None

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
