"""The files that belong together: where modules are found, and their parsed texts, which all runs share."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Protocol
from weakref import WeakValueDictionary

from perflint.config.disk import absolute, is_file, is_folder
from perflint.frozen import dataclass
from perflint.semantics.blocks import Blocks
from perflint.semantics.copied import Copies
from perflint.semantics.declared import Declared
from perflint.semantics.live import Code, Live
from perflint.semantics.module import Module
from perflint.semantics.search_path import ADDS_FOLDERS, added_folders
from perflint.semantics.test_files import is_test_path
from perflint.semantics.texts import FileText, Question, Texts, importers
from perflint.source.reading import Unreadable, read
from perflint.source.text import Source, parse

_OUTSIDE = frozenset({"torch", "numpy", "pandas", "scipy", "PIL", "cv2"}) | sys.stdlib_module_names
"""Packages whose facts are data; their source is never read, even if it lies beside the project."""

_TESTS = frozenset({"test", "tests"})
_MOST_FOLDERS = 4
"""The folders above a script that are searched for what it imports."""
_MOST_SETTINGS = 1_000
"""Files that are not Python; a project with more of them keeps its data there."""
_MOST_LIVE_FILES = 250
_MOST_LIVE_TEXT = 1_500_000
"""Files and characters of a project whose live code is looked for."""
TEXT_IN_MEMORY = 3_500_000
"""Characters of source whose trees are kept; a tree with its tables takes 60 to 110 bytes a character."""


@dataclass(frozen=True, slots=True)
class Located:
    """The answer to where an import leads."""

    file: Path | None
    """The file of the module; None if it is outside of the project."""
    passed: tuple[Path, ...]
    """The files that the search looked for first: files that are not of the project, and missing files or folders."""


class AnswerStore(Protocol):
    """Keeps answers to questions about the texts of a project as they are on the disk, beyond this process."""

    def answer(self, question: Question) -> object:
        """The answer to a question; None if it is not known."""

    def importing(self, name: str) -> tuple[Path, ...] | None:
        """The files that import a full name; None if it is not known."""

    def blocks(self, path: Path) -> Blocks | None:
        """The functions and classes of a file; None if they are not known."""

    def keep_blocks(self, blocks: Mapping[Path, Blocks]) -> None:
        """Add the functions and classes of files."""


class Interrupted(BaseException):
    """The end of a run that is not wanted any more. Code that contains faults lets it pass, as it does an interrupt."""


class Project:
    """Files that belong together, and where their imports lead.

    `files` are the files of the project; they are listed when something is asked of all of them. Imports resolve
    to files below the folder that holds the importing file's top-level package (or script), whether they are
    listed or not, and to listed files below the folders above that; anything else is outside. A project only holds
    texts and trees: the results of a run of the interpreter are in its view.
    """

    def __init__(
        self,
        files: Iterable[Path | str] = (),
        most: int | None = None,
        declared: Declared | None = None,
        settings: Sequence[str] | None = None,
    ) -> None:
        """`files` are listed when they are needed; those that are texts are absolute. `most` of them are taken.

        `settings` are complete when the files are listed.
        """
        self._settings = settings
        self.declared: Declared = declared or Declared()
        """The functions that the settings declare."""
        self._listing = files
        self._most = most
        self.base: Project | None = None
        """The project that this one is an overlay of: it lists the files and searches their texts."""
        self.changed: Mapping[Path, str] = {}
        """The texts of the files that an overlay changes."""
        self.sizes: Mapping[Path, int] = {}
        """The numbers of nodes that limit the work on some files, in place of their own."""
        self.changes: object = None
        """The differences of an overlay from the project below it, which `changes` keeps here."""
        self.summaries: object = None
        """The summaries of the files, which `callers` keeps here."""
        self.top_levels: object = None
        """The results of the top levels of modules, which the interpreter keeps here."""
        self.is_wanted: Callable[[], bool] | None = None
        """Asked before each function of a run, which ends with `Interrupted` if the answer is no."""
        self.answers: AnswerStore | None = None
        """Answers about the texts on the disk that are known from earlier runs."""
        self._parsed: OrderedDict[Path, Module | None] = OrderedDict()
        self._weight = 0
        self._held: WeakValueDictionary[Path, Module] = WeakValueDictionary()
        """The parsed files that something holds: runs that checks go on from hold theirs for long."""
        self._is_file: dict[Path, bool] = {}
        self._is_folder: dict[Path, bool] = {}
        self._located: dict[tuple[Path, Path | None, str], Located] = {}
        self._in_added: dict[str, Path | None] = {}
        """The files of modules in folders that code puts on the path of modules."""
        self._roots: dict[Path, Path] = {}
        self._packages: dict[Path, tuple[str, ...]] = {}
        """The names of the packages that folders are, in parts."""
        self._single: dict[Path, FileText] = {}
        self._test_paths: dict[Path, bool] = {}

    def overlay(self, texts: Mapping[Path, str]) -> Project:
        """The same project with other texts for some files; the parsed trees of the other files are shared."""
        other = Project(declared=self.declared)
        other.base = self.base or self
        other.changed = {**self.changed, **{path.absolute(): text for path, text in texts.items()}}
        other._is_file = {**self._is_file, **dict.fromkeys(other.changed, True)}
        folders = {folder for path in other.changed for folder in path.parents}
        other._is_folder = {**self._is_folder, **dict.fromkeys(folders, True)}
        if all(self.is_file(path) and self.lists(path) for path in other.changed):
            # No file is new, so all imports lead to the same files.
            other._located, other._roots, other._packages = self._located, self._roots, self._packages
        other._parsed = OrderedDict((path, file) for path, file in self._parsed.items() if path not in other.changed)
        other._weight = sum(_weight(file) for file in other._parsed.values())
        other._held.update((path, file) for path, file in self._held.items() if path not in other.changed)
        return other

    def size(self, module: Module) -> int:
        """The number of nodes that limits the work on a file: of its text, or of the text that fixes begin with."""
        return self.sizes.get(module.path, module.structure.size)

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """The absolute paths of the files of the project, sorted."""
        return self.base.files if self.base is not None else tuple(map(Path, self.paths))

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The same as texts, since making paths of all files takes longer than listing them."""
        if self.base is not None:
            return self.base.paths
        listed = itertools.islice(self._listing, self._most)
        found = {path if isinstance(path, str) else str(path.absolute()) for path in listed}
        return tuple(sorted(found, key=lambda path: os.path.normcase(path).split(os.sep)))

    @cached_property
    def settings(self) -> tuple[str, ...] | None:
        """The files that are not Python and may name definitions, such as *.yaml; None if they are not known."""
        if self.base is not None:
            return self.base.settings
        is_listed = self.is_whole and self._settings is not None
        return (
            tuple(sorted(self._settings or ())) if is_listed and len(self._settings or ()) <= _MOST_SETTINGS else None
        )

    @property
    def is_whole(self) -> bool:
        """True if the listed files are all that there are; if not, an unlisted file may use anything."""
        if self.base is not None:
            return self.base.is_whole
        return self._most is None or len(self.paths) < self._most

    @cached_property
    def texts(self) -> Texts:
        """The texts of the files, to be searched without parsing them."""
        if self.base is not None:
            return self.base.texts.overlay(self._text_of(path, text) for path, text in self.changed.items())
        return Texts([self._single.get(path) or self._text_of(path) for path in self.files])

    def known(self, question: Question) -> object:
        """The answer to a question, if it is known without searching texts; else None."""
        return None if (store := self._store()) is None else store.answer(question)

    def _store(self) -> AnswerStore | None:
        """The store of answers, unless asking the texts themselves takes less time, because they were searched."""
        return None if self.base is not None or "texts" in self.__dict__ else self.answers

    def _importing(self, name: str) -> tuple[FileText, ...]:
        store = self._store()
        paths = None if store is None else store.importing(name)
        if paths is None:
            return self.texts.importing(name)
        return tuple(file for path in paths if (file := self.file_text(path)) is not None)

    def answer(self, question: Question) -> object:
        """The answer to a question about the texts, with the paths of files in place of the files."""
        if question.file is None:
            return tuple(file.path for file in self.found(question))
        file = self.file_text(question.file) or FileText(question.file, "", "")
        return getattr(file, question.asks)(*question.arguments[1:])

    def found(self, question: Question) -> tuple[FileText, ...]:
        """The files that answer a question about all files."""
        if question.asks == "importers" and self._store() is not None:
            module, name = question.arguments
            assert isinstance(module, str) and isinstance(name, str)
            return importers(module, name, self._importing)
        if question.asks == "live":
            path, definition = question.arguments
            assert isinstance(path, str) and isinstance(definition, str)
            file = self.file_text(Path(path))
            is_live = self._live is None or self._live.has(Path(path), definition)
            return (file,) if is_live and file is not None else ()
        if question.asks == "set":
            path, word, value = question.arguments
            assert isinstance(path, str) and isinstance(word, str) and isinstance(value, str)
            file = self.file_text(Path(path))
            return (file,) if self._settings_change(word, value) and file is not None else ()
        if question.asks == "original":
            return self._originals(str(question.arguments[0]))[:1]
        if question.asks == "added":
            added = self._added(str(question.arguments[0]))
            file = None if added is None else self.file_text(added)
            return () if file is None else (file,)
        if question.asks == "published":
            file = self.file_text(Path(str(question.arguments[0])))
            return (file,) if (self._live is None or self._live.is_published) and file is not None else ()
        if question.asks == "named":
            path, word = question.arguments
            assert isinstance(path, str) and isinstance(word, str)
            file = self.file_text(Path(path))
            return (file,) if self._settings_name(word) and file is not None else ()
        found: tuple[FileText, ...] = getattr(self.texts, question.asks)(*question.arguments)
        return found

    def _originals(self, path: str) -> tuple[FileText, ...]:
        """The namesakes of a file, in folders of which its folder is a copy, that are not known to be dead."""
        files = filter(None, map(self.file_text, map(Path, self._copies.originals(path))))
        return tuple(file for file in files if self._live is None or self._live.has(file.path, ""))

    @cached_property
    def _copies(self) -> Copies:
        def text(path: str) -> str:
            file = self.file_text(Path(path))
            return "" if file is None else file.text

        return Copies(self.paths, text)

    def _added(self, name: str) -> Path | None:
        """The file of a module in a folder that the project puts on the path of modules."""
        if name not in self._in_added:
            files = (path for folder in self._search_path for path in self.locate(name, folder))
            self._in_added[name] = next((path for path in files if self.is_file(path) and self.lists(path)), None)
        return self._in_added[name]

    @cached_property
    def _search_path(self) -> tuple[Path, ...]:
        """The folders that code of the project puts on the path of modules."""
        texts = ((file.path, file.text) for file in self.texts.matching(ADDS_FOLDERS))
        folders = {parent for path in self.paths for parent in Path(path).parents}
        return added_folders(texts, folders)

    def _settings_name(self, word: str) -> bool:
        """True if a file that is not Python contains a word, or if these files are not known."""
        texts = self._settings_texts
        return texts is None or any(word in text for text in texts)

    def _settings_change(self, word: str, value: str) -> bool:
        """True if a file that is not Python may give a setting another value, or if these files are not known."""
        texts = self._settings_texts
        kept = rf"""["']?\b{re.escape(word)}["']?\s*[:=]\s*(?:{value})\s*(?=[,}}#\n]|$)"""
        return texts is None or any(word in re.sub(kept, "", text) for text in texts if word in text)

    @cached_property
    def _settings_texts(self) -> tuple[str, ...] | None:
        if self.settings is None:
            return None
        return tuple(FileText(Path(path), "").text for path in self.settings)

    @cached_property
    def _live(self) -> Live | None:
        """The live code; None if it is not known, or if the project is large: each edit asks for all of it again."""
        if self.settings is None or len(self.paths) > _MOST_LIVE_FILES:
            return None
        unchanged = self if self.base is None else self.base
        paths = {*self.files, *self.changed}
        files = [
            file
            for path in sorted(paths, key=str)
            if (file := (self if path in self.changed else unchanged).file_text(path)) is not None
        ]
        if sum(len(file.text) for file in files) > _MOST_LIVE_TEXT:
            return None
        settings = (FileText(Path(path), "") for path in self.settings)
        blocks = unchanged._blocks_of(file for file in files if file.path not in self.changed)
        blocks.update((file.path, file.blocks) for file in files if file.path in self.changed)
        code = [Code(file.path, blocks[file.path]) for file in files]
        return Live(code, ((file.path, file.text) for file in settings))

    def _blocks_of(self, files: Iterable[FileText]) -> dict[Path, Blocks]:
        """The functions and classes of files on the disk. Those that are not known from earlier runs are kept."""
        found: dict[Path, Blocks] = {}
        new: dict[Path, Blocks] = {}
        for file in files:
            known = None if self.answers is None else self.answers.blocks(file.path)
            if known is None:
                known = new[file.path] = file.blocks
            found[file.path] = known
        if self.answers is not None and new:
            self.answers.keep_blocks(new)
        return found

    def file_text(self, path: Path) -> FileText | None:
        """The text of a file of the project; None for other files."""
        if not self.lists(path):
            return None
        # Without the texts of all files, if nothing has asked for these.
        known = self.texts.file(path) if "texts" in self.__dict__ else self._single.get(path)
        if known is None:
            known = self._single[path] = self._text_of(path, self.changed.get(path))
        return known

    def adopt(self, source: Source) -> None:
        """Let a file that was imported before it is checked share the tree made then."""
        known = self._held.get(absolute(source.path))
        if known is not None and known.text == source.text:
            source.tree = known.tree

    def module_of(self, source: Source) -> Module:
        """The module of a file to be checked. Raises SyntaxError and ValueError as `ast.parse` does."""
        path = absolute(source.path)
        known = self._held.get(path)
        if known is not None and known.tree is source.tree:
            return known
        module = Module(self.name_of(path), path, self.root_of(path), source.text, source.tree)
        if self.changed.get(path, source.text) == source.text:
            self._keep(path, module)
        return module

    def module_at(self, path: Path) -> Module | None:
        """The module of a file that another one imports; None if it cannot be read or parsed."""
        if path in self._parsed:
            self._parsed.move_to_end(path)
            return self._parsed[path]
        module = self._held.get(path) or self._read(path)
        self._keep(path, module)
        return module

    def _read(self, path: Path) -> Module | None:
        try:
            changed = self.changed.get(path)
            text = read(str(path)).text if changed is None else changed
            return Module(self.name_of(path), path, self.root_of(path), text, parse(text))
        except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
            # It is reported when it is checked itself.
            return None

    def located(self, name: str, root: Path, beside: Path | None = None) -> Located:
        """The file of the module of a full name, as the files below a root import it, or those of a folder."""
        key = (root, beside, name)
        known = self._located.get(key)
        if known is None:
            known = self._located[key] = self._locate(name, root, beside)
        return known

    def _locate(self, name: str, root: Path, beside: Path | None) -> Located:
        passed: list[Path] = []
        for path in self.locate(name, root):
            if self.is_file(path):
                return Located(path, tuple(passed))
            passed.append(self.missing(path))
        for path in (*self.locate_above(name, root), *(self.locate(name, beside) if beside is not None else ())):
            if self.is_file(path) and self.lists(path):
                return Located(path, tuple(passed))
            passed.append(path if self.is_file(path) else self.missing(path))
        return Located(None, tuple(dict.fromkeys(passed)))

    def locate(self, name: str, root: Path) -> tuple[Path, ...]:
        """The files that would be the module of a full name, the first that exists last; empty if it is outside."""
        if not name or name.split(".", 1)[0] in _OUTSIDE:
            return ()
        base = root.joinpath(*name.split("."))
        package, module = base / "__init__.py", base.with_name(base.name + ".py")
        return (package,) if self.is_file(package) else (package, module)

    def locate_above(self, name: str, root: Path) -> Iterator[Path]:
        """The files of the project that would be a module for a script, as of `scripts` beside a package or `src`.

        The script is run with such a folder on the path, or the package is installed. Tests run once, so the time for
        the package that they import is better spent elsewhere. The folders that the settings name come first.
        """
        for start in self.declared.roots:
            yield from self.locate(name, start)
        top = self._top
        if top is None or not root.is_relative_to(top) or not _TESTS.isdisjoint(root.relative_to(top).parts):
            return
        for folder in root.parents[:_MOST_FOLDERS]:
            if not folder.is_relative_to(top):
                break
            for start in (folder, folder / "src"):
                yield from self.locate(name, start)
        if name.partition(".")[0] == top.name:
            # All files are in one folder, and the script is run beside it: `from src.models import Model`.
            yield from self.locate(name, top.parent)

    @contextmanager
    def while_wanted(self, is_wanted: Callable[[], bool]) -> Iterator[None]:
        """Within it, runs of this project and of that below it end with Interrupted once `is_wanted` says no."""
        projects = [self] if self.base is None else [self, self.base]
        before = [project.is_wanted for project in projects]
        outer = self.is_wanted
        for project in projects:
            project.is_wanted = is_wanted if outer is None else lambda: is_wanted() and outer()
        try:
            yield
        finally:
            for project, each in zip(projects, before, strict=True):
                project.is_wanted = each

    def go_on(self) -> None:
        """Raise Interrupted if the run is not wanted any more."""
        if self.is_wanted is not None and not self.is_wanted():
            raise Interrupted

    def lists(self, path: Path) -> bool:
        """True if a file is one of the project."""
        return str(path) in self._listed

    @cached_property
    def _top(self) -> Path | None:
        """The innermost folder around all files of the project; None if it has none."""
        # The files are sorted, so the first and the last one differ the most.
        ends = {os.path.dirname(path) for path in (*self.paths[:1], *self.paths[-1:])}
        return Path(os.path.commonpath(ends)) if ends else None

    @cached_property
    def _listed(self) -> frozenset[str]:
        return frozenset(self.paths) if self.base is None else self.base._listed.union(map(str, self.changed))

    def is_test_path(self, path: Path) -> bool:
        """True if the path of a file alone shows a test."""
        known = self._test_paths.get(path)
        if known is None:
            known = self._test_paths[path] = is_test_path(path)
        return known

    def is_file(self, path: Path) -> bool:
        """True if a file exists, as far as the project has looked."""
        known = self._is_file.get(path)
        if known is None:
            known = self._is_file[path] = is_file(path)
        return known

    def missing(self, path: Path) -> Path:
        """The outermost folder above a missing file that is missing, too; the file itself if its folder exists.

        Many imports of one package that is not installed here have one such folder.
        """
        found = path
        while not self._has_folder(found.parent):
            found = found.parent
        return found

    def _has_folder(self, path: Path) -> bool:
        known = self._is_folder.get(path)
        if known is None:
            known = self._is_folder[path] = is_folder(path) or path == path.parent
        return known

    def root_of(self, path: Path) -> Path:
        """The folder that the absolute imports of a file start from: the one that holds its top-level package."""
        folder = path.parent
        known = self._roots.get(folder)
        if known is None:
            stated = next((root for root in self.declared.roots if folder.is_relative_to(root)), None)
            known = folder if stated is None else stated
            while stated is None and self.is_file(known / "__init__.py") and known.parent != known:
                known = known.parent
            self._roots[folder] = known
        return known

    def name_of(self, path: Path) -> str:
        """The full name of a file's module, as the files below its root import it."""
        folder, stem = path.parent, path.stem
        package = self._packages.get(folder)
        if package is None:
            package = self._packages[folder] = folder.relative_to(self.root_of(path)).parts
        return ".".join(package if stem == "__init__" and package else (*package, stem))

    def _text_of(self, path: Path, text: str | None = None) -> FileText:
        return FileText(path, self.name_of(path), text)

    def _keep(self, path: Path, module: Module | None) -> None:
        self._weight += _weight(module) - _weight(self._parsed.pop(path, None))
        self._parsed[path] = module
        if module is not None:
            self._held[path] = module
        while self._weight > TEXT_IN_MEMORY and len(self._parsed) > 1:
            _, oldest = self._parsed.popitem(last=False)
            self._weight -= _weight(oldest)


def _weight(module: Module | None) -> int:
    return 0 if module is None else len(module.text)
