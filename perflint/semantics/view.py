"""The project as one run of the interpreter sees it.

A run checks one file. It starts without any knowledge, so its answers depend on the texts of the project alone, and
not on earlier checks. Everything that it takes from other files goes through here and is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, cast

from perflint.frozen import dataclass
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.interpreter.memory import Memory, ModuleState
from perflint.semantics.module import Module
from perflint.semantics.project import Project
from perflint.semantics.search_path import ADDS_FOLDERS
from perflint.semantics.structure import ClassInfo, FunctionInfo
from perflint.semantics.test_files import is_test_file
from perflint.semantics.texts import FileText, Question
from perflint.semantics.values import Function, Value


def no_arguments(module: Module, info: FunctionInfo) -> list[Arguments]:
    """No file is known to pass any."""
    return []


class Every(NamedTuple):
    """The calls of a function that are known."""

    arguments: tuple[Arguments | None, ...]
    """The arguments of each; None for code that is given the function."""
    are_all: bool
    """True if the project alone calls the function, and only there."""


def no_call(module: Module, info: FunctionInfo) -> Every:
    """Other code may call any function."""
    return Every((), False)


Outside = Callable[[Module, FunctionInfo], list[Arguments]]
"""Gives the arguments that known calls pass to a function."""
EveryCall = Callable[[Module, FunctionInfo], Every]
"""Gives all calls of a function that are known."""

_SPELLED = {"False": "[Ff]alse|no|off", "True": "[Tt]rue|yes|on", "None": "None|null|~"}
"""The spellings of a value in files of settings, as patterns."""


class Answers(Mapping[Question, object]):
    """The answers to the questions of several runs. Those of the cache are read when they are asked for."""

    def __init__(self, every: Iterable[Mapping[Question, object]]) -> None:
        self._sources: dict[Question, Mapping[Question, object]] = {}
        for each in every:
            self._sources.update(each._sources if isinstance(each, Answers) else dict.fromkeys(each, each))

    def __getitem__(self, question: Question) -> object:
        return self._sources[question][question]

    def __iter__(self) -> Iterator[Question]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    def __reduce__(self) -> tuple[type[dict[Question, object]], tuple[dict[Question, object]]]:
        """They travel to other machines without the cache."""
        return dict, (dict(self),)


@dataclass(frozen=True, slots=True)
class Record:
    """The reads of a run, which its results depend on."""

    code: frozenset[Path]
    """The files that it parsed, and the files and folders that it looked for and that do not exist."""
    texts: frozenset[Path]
    """The files whose whole text counts, comments too."""
    questions: Mapping[Question, object]
    """The questions that it asked, with their answers."""


def _key_of(name: str, importer: Module) -> tuple[Path, Path | None, str]:
    """All that decides where the import of a name leads."""
    # A file that wraps a library has its name: `import wandb` in wandb.py.
    is_own = name.partition(".")[0] == importer.path.stem
    return importer.root, None if is_own else importer.beside, name


class View:
    """The files of a project as one run reads them, and its results for them."""

    def __init__(self, project: Project, checked: Module | None = None) -> None:
        self.project = project
        self.memory: Memory = Memory()
        self.checked: Path | None = None if checked is None else checked.path
        """The file that the run is about; None for the run of one top level."""
        self.reads: dict[Path, Module | None] = {}
        """The other files whose contents the answers depend on; None for those that do not parse, and for files and
        folders that do not exist.
        """
        self.texts: set[Path] = set()
        """The other files whose texts were searched."""
        self.questions: dict[Question, object] = {}
        """The questions about texts that the answers depend on, with the answers to them."""
        self.outside: Outside = no_arguments
        """Gives the arguments that other files pass to a function of the file that is checked."""
        self.inside: Outside = no_arguments
        """Gives the arguments that the file that is checked passes to its own functions."""
        self.every_call: EveryCall = no_call
        """Gives all calls that are known of a function of the file that is checked."""
        self.is_informed: bool = False
        """True if attributes of objects may come from calls of methods that other code may call, too."""
        self.records: list[Record] = []
        """The reads of other runs whose results this one uses."""
        self._found: dict[tuple[Path, Path | None, str], Module | None] = {}
        self._entered: dict[Path, Module] = {}
        self._modules: dict[str, Path] = {}
        self._states: dict[str, ModuleState] = {}
        if checked is not None:
            self._enter(checked)

    def find(self, name: str, importer: Module) -> Module | None:
        """A module by the full name that a file uses; None if it is outside of the project."""
        key = _key_of(name, importer)
        if key not in self._found:
            path = self.locate(name, importer)
            self._found[key] = None if path is None else self.at(path)
        return self._found[key]

    def locate(self, name: str, importer: Module) -> Path | None:
        """The file of a module by the full name that a file uses; None if it is outside of the project."""
        root, beside, _ = _key_of(name, importer)
        located = self.project.located(name, root, beside)
        for path in located.passed:
            self.reads.setdefault(path, None)
        return located.file or (self.added(name) if located.passed else None)

    def added(self, name: str) -> Path | None:
        """The file of a module in a folder that code of the project puts on the path of modules."""
        if not self.matching(ADDS_FOLDERS):
            return None
        return next((file.path for file in self._ask("added", name)), None)

    def loaded(self, name: str) -> Module | None:
        """A module that the run has met, by its full name."""
        path = self._modules.get(name)
        return None if path is None else self._entered.get(path) or self.at(path)

    def meet(self, name: str, path: Path) -> None:
        """Let a module that another run has met be known by its full name; its file is read when it is asked for."""
        self._modules.setdefault(name, path)

    def klass(self, name: str) -> tuple[Module, ClassInfo] | None:
        """A class of a module that the run has met, by its full name, with its module."""
        facts = self.memory.classes.get(name)
        module, _, qualname = name.rpartition(".")
        home = self.loaded(module if facts is None else facts.module)
        info = None if home is None else home.klass(qualname if facts is None else facts.qualname)
        return None if home is None or info is None else (home, info)

    def function(self, value: Value) -> tuple[Module, FunctionInfo] | None:
        """The function of a module that the run has met that a value is, with its module; None for other values."""
        if not isinstance(value, Function):
            return None
        home = self.loaded(value.module)
        info = None if home is None else home.function(value.line, value.column)
        return None if home is None or info is None else (home, info)

    def at(self, path: Path) -> Module | None:
        """The module of a file; None if it does not parse."""
        if path in self._entered:
            return self._entered[path]
        self.reads[path] = module = self.project.module_at(path)
        return None if module is None else self._enter(module)

    def peek(self, path: Path) -> Module | None:
        """The module of a file whose syntax alone is asked for; None if it does not parse."""
        entered = self._entered.get(path)
        if entered is None:
            entered = self.reads[path] = self.project.module_at(path)
        return entered

    @property
    def modules(self) -> Mapping[str, Path]:
        """The files of the modules that the run has met, by their full names."""
        return self._modules

    @property
    def record(self) -> Record:
        """The reads of the run, and of those whose results it uses."""
        code = frozenset((*self.reads, *self._entered)).union(*(other.code for other in self.records))
        texts = frozenset(self.texts).union(*(other.texts for other in self.records))
        questions = Answers((*(other.questions for other in self.records), dict(self.questions)))
        return Record(code, texts, questions)

    def passed_to(self, module: Module, info: FunctionInfo) -> list[Arguments]:
        """The arguments that known calls pass to a method that sets attributes."""
        found = [*self.inside(module, info), *self.outside(module, info)]
        self.is_informed = self.is_informed or bool(found)
        return found

    def rests_on(self, record: Record) -> None:
        """Note that the run uses the results of another one."""
        self.records.append(record)

    def _enter(self, module: Module) -> Module:
        if self._modules.get(module.name, module.path) != module.path:
            # Two scripts of one name in different folders are two modules.
            module = module.renamed(f"{module.name}~{len(self._modules)}")
        self._modules[module.name], self._entered[module.path] = module.path, module
        return module

    def state(self, module: Module) -> ModuleState:
        """The results of the run for a module."""
        return self.state_of(module.name)

    def state_of(self, name: str) -> ModuleState:
        """The results of the run for the module of a full name."""
        known = self._states.get(name)
        if known is None:
            known = self._states[name] = ModuleState()
        return known

    def matching(self, pattern: re.Pattern[str]) -> tuple[FileText, ...]:
        """The files in which a regular expression matches somewhere."""
        return self._ask("matching", pattern)

    def importers(self, module: str, name: str) -> tuple[FileText, ...]:
        """The files that may use a name of a module, also through other modules that import it."""
        return self._ask("importers", module, name)

    def around(self, module: str) -> tuple[FileText, ...]:
        """The files that import a module, something of it, or the package that it lies in."""
        return self._ask("around", module)

    def mentioning(self, word: str) -> tuple[FileText, ...]:
        """The files whose texts contain a word, or a longer one with it."""
        return self._ask("mentioning", word)

    def is_live(self, path: Path, definition: str) -> bool:
        """True if a program of the project may reach a definition of a file, or if that is not known.

        The file itself is the answer to the question if it is live.
        """
        known = self.project.is_whole and self.project.lists(path)
        return not known or bool(self._ask("live", str(path), definition))

    def original(self, path: Path) -> Path | None:
        """The namesake of a file in a folder of which its folder is a copy; None if there is none."""
        if not self.project.is_whole or not self.project.lists(path):
            return None
        return next((file.path for file in self._ask("original", str(path))), None)

    def is_published(self, path: Path) -> bool:
        """True if the project of a file is packaged for other projects, or if that is not known.

        The file itself is the answer to the question if it is.
        """
        known = self.project.is_whole and self.project.lists(path)
        return not known or bool(self._ask("published", str(path)))

    def settings_name(self, path: Path, word: str) -> bool:
        """True if settings may name a definition of a file by a word, or if that is not known.

        The file itself is the answer to the question if they may.
        """
        known = self.project.is_whole and self.project.lists(path)
        return not known or bool(self._ask("named", str(path), word))

    def settings_change(self, path: Path, word: str, value: object) -> bool:
        """True if settings may give a setting of a file another value than its default, or if that is not known.

        The file itself is the answer to the question if they may.
        """
        known = self.project.is_whole and self.project.lists(path)
        spelled = _SPELLED.get(repr(value)) or re.escape(str(value))
        return not known or bool(self._ask("set", str(path), word, spelled))

    def beside(self, module: Module, pattern: re.Pattern[str]) -> tuple[FileText, ...]:
        """The files that may run in one process with a module, and in which a regular expression matches."""
        return self._ask("beside", str(module.path), pattern)

    def is_light(self, path: Path, most: int) -> bool:
        """True if a file and all that it imports, also through others, have at most about so many hundred lines.

        The file itself is the answer to the question if it does.
        """
        return bool(self._ask("light", str(path), str(most)))

    def naming(self, module: str) -> tuple[FileText, ...]:
        """The files that import a module or a package with this last part of its name, or have it in quotes."""
        return self._ask("naming", module)

    def text(self, file: FileText) -> str:
        """The text of a file that was the answer to a question."""
        self.texts.add(file.path)
        return file.text

    def says(self, module: Module, word: str) -> bool:
        """True if the text of the file that is checked contains a word, or a longer one with it."""
        found = self.questions[Question("contains", (module.path, word))] = word in module.text
        return found

    def matches(self, module: Module, pattern: re.Pattern[str]) -> bool:
        """True if a regular expression matches somewhere in the text of the file that is checked."""
        found = self.questions[Question("finds", (module.path, pattern))] = pattern.search(module.text) is not None
        return found

    def length(self, path: Path) -> int:
        """The number of lines of a file."""
        return cast(int, self._answer(Question("length", (path,))))

    def mentions(self, path: Path, word: str) -> bool:
        """True if the text of a file contains a word, or a longer one with it."""
        return cast(bool, self._answer(Question("contains", (path, word))))

    def defines(self, path: Path, name: str) -> bool:
        """True if the text of a file defines a function or method of a name."""
        return cast(bool, self._answer(Question("defines", (path, name))))

    def finds(self, path: Path, pattern: re.Pattern[str]) -> bool:
        """True if a regular expression matches somewhere in the text of a file."""
        return cast(bool, self._answer(Question("finds", (path, pattern))))

    def is_of_tests(self, path: Path) -> bool:
        """True if a file is a test, or lies among tests."""
        return self.project.is_test_path(path) and is_test_file(
            path, None, lambda: cast(bool, self._answer(Question("holds_tests", (path,))))
        )

    def bases(self, path: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The classes of a file that have bases, with the words among these."""
        return cast(tuple[tuple[str, tuple[str, ...]], ...], self._answer(Question("bases", (path,))))

    def _answer(self, question: Question) -> object:
        try:
            return self.questions[question]
        except KeyError:
            known = self.project.known(question)
            found = self.questions[question] = self.project.answer(question) if known is None else known
            return found

    def _ask(self, asks: str, *arguments: str | re.Pattern[str]) -> tuple[FileText, ...]:
        """The files that answer a question."""
        paths = cast(tuple[Path, ...], self._answer(Question(asks, arguments)))
        return tuple(file for path in paths if (file := self.project.file_text(path)) is not None)
