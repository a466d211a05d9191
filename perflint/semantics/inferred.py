"""What the interpreter finds out about one file: values, call targets, callers, and the structure of the code."""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from perflint.semantics.callers.incoming import Callers, Chain
from perflint.semantics.callers.kept import Run, summaries
from perflint.semantics.callers.public import is_imported, is_offered, serves_programs, serves_project
from perflint.semantics.callers.reach import Reach
from perflint.semantics.interpreter.analysis import Analysis, parameters
from perflint.semantics.interpreter.frame import Budget, Frame
from perflint.semantics.interpreter.lineage import is_module, lineage
from perflint.semantics.interpreter.records import field_given
from perflint.semantics.memo import Memo, once_per_node, remembered
from perflint.semantics.structure import FunctionInfo, FunctionNode, ancestors, walk
from perflint.semantics.symbols import Symbols
from perflint.semantics.values import UNKNOWN, Function, Instance, Value
from perflint.semantics.view import View

if TYPE_CHECKING:
    from perflint.semantics.callers.summary import Call, Summary
    from perflint.semantics.facts.arguments import Arguments
    from perflint.semantics.interpreter.frame import Names, Recorder
    from perflint.semantics.module import Module
    from perflint.semantics.project import Project
    from perflint.source.text import Source

_Node = TypeVar("_Node", bound=ast.AST)

LAST = 2
"""The round of the summaries that checks ask."""


class CallsOf(Enum):
    """The calls that the facts about a file take arguments and heat from."""

    PROJECT = "all files of the project"
    FILE = "the file alone, but for the arguments of later rounds: its summaries are made from that"
    PRIVATE = "the file alone, and only calls of functions that no other file can call"


@once_per_node
def _names_by_id(facts: Inferred, node: ast.AST) -> Mapping[str, list[ast.Name]]:
    # Rules ask for one name after the other of the same function or loop.
    found: dict[str, list[ast.Name]] = {}
    for part in walk(node):
        if isinstance(part, ast.Name):
            found.setdefault(part.id, []).append(part)
    return found


class Inferred(ABC):
    """The values in one file, the functions that it calls, and those that call it.

    All answers are total. Raises SyntaxError and ValueError where the file does not parse.
    """

    @staticmethod
    @abstractmethod
    def summary_of(project: Project, path: Path, round: int) -> Summary | None:
        """The summary of a file of a project in a round; None if the file does not parse."""

    def __init__(
        self,
        source: Source,
        project: Project,
        calls: CallsOf = CallsOf.PROJECT,
        part: range | None = None,
        round: int = LAST + 1,
    ) -> None:
        """`calls` are those that heat is taken from; arguments, too, but for a summary of a later `round`.

        With `part`, the facts are those of these lines, and little is known of the other functions.
        """
        self.source = source
        self.part = part
        self._calls = calls
        self.module: Module = project.module_of(source)
        self._round = 0 if calls is CallsOf.PRIVATE else round
        begun = summaries(project).take_run(self.module) if self._round and part is None else None
        if begun is not None and calls is CallsOf.PROJECT:
            summaries(project).awaited.discard(self.module.path)
        self.run: Run = begun or self._begin(project)
        """The run that the facts come from. The summary of the next round continues it."""
        self.view: View = self.run.analysis.view
        """The other files as they were read, and the results for them."""
        self.is_changed: bool = True
        """True if the last round has run anything again."""
        self._functions: dict[ast.AST, FunctionNode | None] = {}
        """The functions around nodes that were asked for, and around those in between."""
        self.memo: Memo = {}
        """The answers about the file that `memo.once` and its like remember until the model is closed."""

    def _begin(self, project: Project) -> Run:
        view = View(project, self.module)
        is_private, is_for_summary = self._calls is CallsOf.PRIVATE, self._calls is CallsOf.FILE
        return Run(Analysis(view, self.module, is_private, keeps_calls=is_for_summary), Reach(view, self.module))

    @cached_property
    def _recorder(self) -> Recorder:
        """The values and targets of all nodes. The first question about one runs the interpreter over the file."""
        analysis = self.run.analysis
        if self.part is not None and self.callers is not None:
            self.view.outside, self.view.every_call = self.callers.arguments, self.callers.every
        if not analysis.rounds:
            analysis.run_alone(self.part)
        while self.part is None and analysis.rounds <= self._round:
            last = self.callers if analysis.rounds == self._round else None
            callers = last or self._callers_in(analysis.rounds)
            self.is_changed = analysis.run_with_callers(callers.arguments, callers.every)
        if self._calls is CallsOf.PROJECT:
            analysis.recorder.keep_no_calls()
        return analysis.recorder

    @cached_property
    def callers(self) -> Callers | None:
        """The callers in other files; None if the model is made without them."""
        return self._callers_in(self._round) if self._calls is CallsOf.PROJECT else None

    def _callers_in(self, round: int) -> Callers:
        # No circle, so that all goes when the file is done.
        ask, project = self.summary_of, self.view.project
        return Callers(self.run.reach, lambda path: ask(project, path, round - 1))

    @cached_property
    def serves_programs(self) -> bool:
        """True if only programs of the project use the file: no package exports it, and no model is made of it."""
        return serves_programs(self.view, self.module)

    @cached_property
    def serves_project(self) -> bool:
        """True if files of the project use the file, and no package offers it to other code."""
        return serves_project(self.view, self.module)

    @cached_property
    def is_offered(self) -> bool:
        """True if a package offers the file to other code."""
        return is_offered(self.view, self.module)

    @cached_property
    def is_imported(self) -> bool:
        """True if another file of the project, which is not a test, imports anything of the file."""
        return is_imported(self.view, self.module)

    def is_live(self, definition: str) -> bool:
        """True if a program of the project, or a user of its packages, may reach a definition of the file."""
        return self.view.is_live(self.module.path, definition)

    def chain(self, info: FunctionInfo) -> Chain | None:
        """How often other files call a function, and which calls show it; None if none is known to."""
        return None if self.callers is None else self.callers.chain(info)

    def received(self, info: FunctionInfo) -> list[Arguments]:
        """The arguments that known calls pass to a function of the file."""
        own = self._recorder.passed_to((info.node.lineno, info.node.col_offset))
        return [*own, *self.view.outside(self.module, info)]

    def is_passed_by_bases(self, info: FunctionInfo) -> bool:
        """True if inherited methods call a method of the file."""
        place, runs = (info.node.lineno, info.node.col_offset), self.view.memory.inherited_runs
        return any(place in run.passed for run in runs.values())

    def passing(self, info: FunctionInfo) -> list[Call]:
        """The calls in other files that pass arguments to a function of the file."""
        return [] if self.callers is None else self.callers.passing(info)

    def passed(self, call: ast.Call) -> tuple[Value, Arguments] | None:
        """The callee and the arguments of a call of the file, if the model is made to keep them."""
        return self._recorder.passed.get(call)

    def relies_on_callers(self, node: ast.AST) -> bool:
        """True if facts about a node may come from calls of functions that yet other code may call."""
        if self._recorder and self.view.is_informed:
            return True
        function = self.function(node)
        while function is not None:
            if (function.lineno, function.col_offset) in self._recorder.informed:
                return True
            function = self.function(function)
        return False

    def says(self, *words: str) -> bool:
        """True if the text of the file contains one of some words, as evidence about its code."""
        return any(map(self._says, words))

    def _says(self, word: str) -> bool:
        known: bool | None = self.memo.get(word)
        if known is None:
            known = self.memo[word] = self.view.says(self.module, word)
        return known

    def matches(self, pattern: re.Pattern[str]) -> bool:
        """True if a regular expression matches somewhere in the text of the file."""
        known: bool | None = self.memo.get(pattern)
        if known is None:
            known = self.memo[pattern] = self.view.matches(self.module, pattern)
        return known

    def infer(self) -> None:
        """Run the interpreter now, not when the first question needs it."""
        _ = self._recorder

    @property
    def steps(self) -> int:
        """Nodes that the interpreter ran for this file."""
        return self._recorder.steps

    @property
    def unfinished(self) -> int:
        """Functions and top levels of this file that the interpreter left early, because they are nested too deep."""
        return self._recorder.unfinished

    def value(self, node: ast.expr) -> Value:
        """The value of an expression at its last evaluation; UNKNOWN if it is never evaluated."""
        return self._recorder.values.get(node, UNKNOWN)

    def shown(self, node: ast.expr) -> Mapping[str, Value]:
        """The attributes of an argument of `str.format` that the text shows, by name."""
        return self._recorder.shown.get(node, {})

    def is_evaluated(self, node: ast.expr) -> bool:
        """True if the interpreter reached an expression; if not, its value is unknown."""
        return node in self._recorder.values

    @remembered
    def parameters(self, function: FunctionNode) -> tuple[Names, Names]:
        """The parameters of a function by themselves, and with the arguments of the file's calls."""
        info = self.module.defined_by(function)
        return ({}, {}) if info is None else parameters(self.view, self.module, info, self._recorder)

    def function_of(self, value: Value) -> FunctionInfo | None:
        """The function of this file that a value is; None for other values."""
        if not isinstance(value, Function) or value.module != self.module.name:
            return None
        return self.module.function(value.line, value.column)

    def functions_of(self, node: ast.expr) -> list[FunctionInfo]:
        """The functions of this file that an expression may stand for."""
        found = map(self.function_of, self.value(node).members)
        return [info for info in found if info is not None]

    def target(self, call: ast.Call) -> str:
        """The full name of a callee, as in `CallSite.target`; empty when unknown."""
        return self._recorder.targets.get(call, "")

    def is_module(self, value: Instance) -> bool:
        """True if an object is a torch.nn.Module."""
        return is_module(Frame(self.view, self.module, Budget(0), names={}), value.cls)

    def makes_module(self, node: ast.AST) -> bool:
        """True if a node runs while a module is made, still on the CPU: in a constructor, or in code for that alone."""
        function = self.function(node)
        return function is not None and (function.lineno, function.col_offset) in self._recorder.constructing

    def lineage(self, cls: str) -> tuple[str, ...]:
        """The full names of a class and its bases, nearest first."""
        # The names of a file are known once it has been interpreted.
        _ = self._recorder
        return lineage(Frame(self.view, self.module, Budget(0), names={}), cls)

    def field_given(self, call: ast.Call, name: str) -> ast.expr | None:
        """The argument of a call that a field of the new object holds as it is; None if it makes no such object."""
        made = self.value(call)
        if not isinstance(made, Instance):
            return None
        return field_given(Frame(self.view, self.module, Budget(0), names={}), made, call, name)

    def importer_has(self, words: Collection[str], without: Collection[str], pattern: re.Pattern[str]) -> bool:
        """True if a file that imports this one has one of some words and a match of a pattern, and none has a word of
        `without`.
        """
        return self.callers is not None and self.callers.user_has(words, without, pattern)

    @property
    def symbols(self) -> Symbols:
        """The scopes of the file, and the variables that its names mean."""
        return self.module.symbols

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node around a node; None for the module."""
        return self.module.structure.parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first."""
        return ancestors(self.module.structure.parents, node)

    def nodes(self, *types: type[_Node]) -> list[_Node]:
        """All nodes of some types in the file; those of one type are in source order."""
        return self.module.structure.every(*types)

    def names(self, around: ast.AST, name: str) -> Sequence[ast.Name]:
        """The places in a node where a plain name occurs, outer ones first."""
        return _names_by_id(self, around).get(name, ())

    def everything(self) -> Iterable[ast.AST]:
        """All nodes of the file but the module itself, outer ones first."""
        return self.module.structure.parents

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function or lambda around a node; None at module or class level."""
        passed: list[ast.AST] = []
        found: FunctionNode | None = None
        for around in self.ancestors(node):
            if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                found = around
            elif around in self._functions:
                found = self._functions[around]
            elif not isinstance(around, ast.ClassDef):
                passed.append(around)
                continue
            break
        self._functions.update(dict.fromkeys(passed, found))
        return found
