"""The calls that other files make of the functions of one file: what they pass, and how often they run."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from perflint.findings import Heat
from perflint.frozen import dataclass, replace
from perflint.semantics.callers.adopted import adopted
from perflint.semantics.callers.by_name import accepts, tells
from perflint.semantics.callers.reach import Reach
from perflint.semantics.callers.summary import Call, FunctionKey, Summary
from perflint.semantics.callers.uses import may_read_method, only_calls, other_code_may_call
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.module import Module
from perflint.semantics.regions.compiled import COMPILES, DEEPEST, Compiled
from perflint.semantics.structure import FunctionInfo, path_of
from perflint.semantics.view import Every

_MOST_CALLERS = 32
"""Functions that lead to one, and are looked at."""


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

    def __init__(self, reach: Reach, summary_of: Callable[[Path], Summary | None]) -> None:
        self._view, self._module = reach.view, reach.module
        self._summary_of = summary_of
        self._reach = reach
        self._summaries: dict[Path, Summary | None] = {}
        self._chains: dict[FunctionKey, Chain | None] = {}
        self._told: dict[FunctionKey, FunctionInfo | None] = {}
        """The methods that were asked about, if their names tell them."""

    def key(self, info: FunctionInfo) -> FunctionKey:
        """The key of a function of the file."""
        return FunctionKey(self._module.path, info.qualname)

    def arguments(self, module: Module, info: FunctionInfo) -> list[Arguments]:
        """The arguments that other files pass to a function, as values of this run; empty for those of other files."""
        if module is not self._module:
            return []
        return [adopted(self._view, summary, call.arguments) for call, summary in self._calls(info) if call.arguments]

    def passing(self, info: FunctionInfo) -> list[Call]:
        """The calls in other files that pass arguments to a function."""
        return [call for call, _ in self._calls(info) if call.arguments]

    def every(self, module: Module, info: FunctionInfo) -> Every:
        """All calls of a function of the file that are known, also those in the file itself."""
        if module is not self._module or info.outer is not None:
            return Every((), False)
        key = self.key(info)
        calls = list(self._of(key))
        summaries = [self._summary_at(call.path) for call in calls]
        given = tuple(
            None if call.arguments is None or summary is None else adopted(self._view, summary, call.arguments)
            for call, summary in zip(calls, summaries, strict=True)
        )
        is_used = module.is_program or bool(self._reach.importers(key.path))
        return Every(given, is_used and self._are_all(key, calls))

    def _calls(self, info: FunctionInfo) -> Iterator[tuple[Call, Summary]]:
        if info.outer is not None:
            return
        key = self.key(info)
        # Without importers, the file itself is the only place.
        for path, word in self._reach.places(key) if self._reach.importers(key.path) else ():
            summary = self._summary(path, word) if path != key.path else None
            if summary is not None:
                yield from ((call, summary) for call in summary.calls.get(key, ()))
        for call in self._on_unknown(key):
            summary = self._summary_at(call.path)
            if summary is not None and call.path != key.path:
                yield call, summary

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
        if not self._reach.importers(key.path) and not self._may_override(key) and not self._may_be_named(key):
            # Only the file itself can call it, so its summary, which takes a run over the file, tells nothing more.
            return None
        waiting: list[tuple[FunctionKey, tuple[Call, ...]]] = [(key, ())]
        seen, first, is_cold = {key}, tuple[Call, ...](), bool(self._reach.importers(key.path))
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
                    leads = not is_own or bool(self._reach.importers(key.path))
                    is_cold = is_cold and leads and len(waiting) < _MOST_CALLERS
                    if leads and len(waiting) < _MOST_CALLERS and call.caller is not None and call.caller not in seen:
                        seen.add(call.caller)
                        waiting.append((call.caller, (*behind, call)))
        if not first:
            return None
        return Chain(Heat.COLD if is_cold else Heat.WARM, first)

    def user_has(self, words: Collection[str], without: Collection[str], pattern: re.Pattern[str]) -> bool:
        """True if a file that imports the file, directly or not, has one of some words and a match of a pattern, and
        none has a word of `without`.
        """
        view, users = self._view, self._reach.users[1:]
        if any(view.mentions(path, word) for path in users for word in without):
            return False
        return any(view.mentions(path, word) and view.finds(path, pattern) for path in users for word in words)

    def compiled(self) -> Iterator[tuple[FunctionInfo, Compiled]]:
        """The functions of the file that compiled code of other files runs."""
        if not self.user_has(("compile",), (), COMPILES):
            return
        users = self._reach.users[1:]
        summaries = [summary for path in users if (summary := self._summary(path, "compile")) is not None]
        waiting = [found for summary in summaries for found in summary.compiled.items()]
        seen = set[FunctionKey]()
        for key, compiled in waiting:
            if key in seen:
                continue
            seen.add(key)
            if key.path == self._module.path:
                info = self._module.named_function(key.qualname)
                if info is not None:
                    yield info, compiled
            elif key.path in users and compiled.depth < DEEPEST and (summary := self._summary_at(key.path)) is not None:
                inner = replace(compiled, depth=compiled.depth + 1)
                called = (call for calls in summary.calls.values() for call in calls if call.caller == key)
                waiting += [(call.callee, inner) for call in called if call.arguments is not None]

    def leading_to(self, info: FunctionInfo) -> Iterator[Call]:
        """The calls that lead to a function, except those that its own file makes of it; the nearest first.

        Calls that belong to a training are not followed further.
        """
        key = self.key(info)
        waiting, seen = [key] if info.outer is None else [], {key}
        for function in waiting:
            for call in self._of(function):
                if function == key and call.path == key.path:
                    continue
                yield call
                if not call.trains and call.caller is not None and call.caller not in seen:
                    seen.add(call.caller)
                    waiting += [call.caller] if len(waiting) < _MOST_CALLERS else []

    def _may_be_named(self, key: FunctionKey) -> bool:
        """False if no other file can call a method on an object that it does not know."""
        name = key.qualname.rpartition(".")[2]
        return self._told_by_name(key) is not None and any(self._reach.naming(key.path, name))

    def _may_override(self, key: FunctionKey) -> bool:
        """False if no class of another file of the project can be a base of the class of a method of the file."""
        waiting, seen = [key.qualname.rpartition(".")[0]], set[str]()
        for owner in waiting:
            info = self._module.klass(owner)
            for base in info.node.bases if info is not None and owner not in seen else ():
                path = path_of(base.value if isinstance(base, ast.Subscript) else base)
                is_imported = path.partition(".")[0] in self._module.symbols.imported
                if path in self._module.structure.classes and not is_imported:
                    waiting.append(path)
                elif not path or self._view.project.locate(self._module.full_name(path), self._module.root):
                    return True
            seen.add(owner)
        return False

    def _of(self, function: FunctionKey) -> Iterator[Call]:
        """The calls of a function, or of a method that it overrides, in its own file and in those that import it.

        A generator runs as often as the loop over its results.
        """
        module = self._view.peek(function.path)
        info = None if module is None else module.named_function(function.qualname)
        calls = self._however_often(function)
        if info is None or not info.is_generator:
            yield from calls
        else:
            yield from (replace(call, heat=call.iterated) for call in calls)

    def _however_often(self, function: FunctionKey) -> Iterator[Call]:
        own = self._summary_at(function.path)
        overridden = own.overrides.get(function, ()) if own is not None else ()
        for key in (function, *overridden):
            for path, word in self._reach.places(key):
                summary = self._summary(path, word)
                yield from summary.calls.get(key, ()) if summary is not None else ()
            yield from self._on_unknown(key)

    def _on_unknown(self, method: FunctionKey) -> Iterator[Call]:
        """The calls of a method on objects that the calling file does not know: of a class that a text chooses."""
        info = self._told_by_name(method)
        name = method.qualname.rpartition(".")[2]
        for path in () if info is None else self._reach.naming(method.path, name):
            summary = self._summary_at(path)
            for call in () if summary is None else summary.on_unknown.get(name, ()):
                if info is not None and call.arguments is not None and accepts(info, call.arguments):
                    yield replace(call, callee=method)

    def _told_by_name(self, method: FunctionKey) -> FunctionInfo | None:
        if method not in self._told:
            self._told[method] = self._only_one(method)
        return self._told[method]

    def _only_one(self, method: FunctionKey) -> FunctionInfo | None:
        """A method, if other classes of the project than its own and its relatives have none of its name, nor have
        objects that each program has.
        """
        owner, _, name = method.qualname.rpartition(".")
        if not owner or not tells(name):
            return None
        if all(file.path == method.path for file in self._view.mentioning(name)):
            # No other file calls it.
            return None
        own = self._summary_at(method.path)
        bases = own.overrides.get(method, ()) if own is not None else ()
        relatives = {
            each
            for key in (method, *bases)
            for each in self._reach.family(key.path, key.qualname.rpartition(".")[0].rpartition(".")[2])
        }
        names = {cls for _, cls in relatives}
        for path in self._reach.defining(name):
            module = self._view.peek(path)
            # No importer may lead to the other classes with its bases: a text chooses one of them.
            derived = {cls for cls, bases in self._view.bases(path) if not names.isdisjoint(bases)}
            for info in () if module is None else module.structure.methods.get(name, ()):
                cls = info.owner.rpartition(".")[2]
                if cls not in derived and (path, cls) not in relatives:
                    return None
        module = self._view.peek(method.path)
        return None if module is None else module.named_function(method.qualname)

    def _are_all(self, function: FunctionKey, calls: list[Call]) -> bool:
        """True if the calls are all that the project makes of a function, and it is made for the project alone."""
        name = function.qualname.rpartition(".")[2]
        module = self._view.peek(function.path)
        if module is None or name.startswith("__") or other_code_may_call(self._view, module, function.qualname):
            return False
        lines: dict[Path, set[int]] = {function.path: set()}
        for call in calls:
            lines.setdefault(call.path, set()).add(call.line)
        files = [file.path for file in self._view.mentioning(name) if not self._view.is_of_tests(file.path)]
        return all(path in lines for path in files) and not self._may_be_given_away(function, name, lines)

    def _may_be_given_away(self, function: FunctionKey, name: str, lines: Mapping[Path, set[int]]) -> bool:
        """True if other code than the callers, on these lines, may get a function and call it."""
        summary = self._summary_at(function.path)
        if summary is None:
            return True
        owner = function.qualname.rpartition(".")[0]
        if owner in summary.foreign and not name.startswith("_"):
            return True
        uses = [(other, kept) for path, kept in lines.items() if (other := self._view.peek(path)) is not None]
        if not all(only_calls(other, name, kept) for other, kept in uses):
            return True
        return bool(owner) and any(may_read_method(other, name) for other, _ in uses)

    def _summary(self, path: Path, word: str) -> Summary | None:
        """The summary of a file, if it mentions a function at all."""
        return self._summary_at(path) if self._reach.mentions(path, word) else None

    def _summary_at(self, path: Path) -> Summary | None:
        if path not in self._summaries:
            found = self._summaries[path] = self._summary_of(path)
            if found is not None:
                self._view.rests_on(found.record)
        return self._summaries[path]


def _relative(path: Path, other: Path) -> str:
    """A path without the folders that it shares with another one."""
    shared = sum(1 for one, two in zip(path.parts[:-1], other.parts[:-1], strict=False) if one == two)
    return "/".join(path.parts[shared:])
