"""The results that an edit leaves as they are.

A result rests on a record: the files that its run read, and the questions that it asked of the texts of all files.
It holds after an edit if each of these reads gives the same. For most questions the edited files alone show that, so
that an edit in a large project does not search all texts again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perflint.semantics.search_path import ADDS_FOLDERS
from perflint.semantics.texts import Question, is_around, uses
from perflint.semantics.view import Record

if TYPE_CHECKING:
    from perflint.semantics.project import Project
    from perflint.semantics.texts import FileText


_WORD = re.compile(r"\w+")
_MOST_EDITED = 100
"""Edited files whose words are collected."""


class Difference(NamedTuple):
    """The extent of the difference between two texts of a file."""

    code: bool
    """More than comments and spaces at the ends of lines; True if it is not known."""
    outline: bool
    """The names that it imports, about how long it is, or whether it exists; True if it is not known."""


class Changes:
    """The files of a project that differ between two states of it. The methods are given the new state."""

    def __init__(self, differences: Mapping[Path, Difference]) -> None:
        self._differences = differences
        code = {path for path, difference in differences.items() if difference.code}
        # A new file may lie in a new folder.
        folders = (folder for path, difference in differences.items() if difference.outline for folder in path.parents)
        self._code = frozenset(code.union(folders))
        self._moves = any(difference.outline for difference in differences.values())
        self._kept: dict[Question, bool] = {}
        self._files: dict[Path, FileText | None] = {}

    def spare(self, record: Record, project: Project) -> bool:
        """True if a run that left this record would read the same in the new state."""
        return (
            self._code.isdisjoint(record.code)
            and self._differences.keys().isdisjoint(record.texts)
            and all(self.keep(question, record.questions, project) for question in record.questions)
        )

    def keep(self, question: Question, answers: Mapping[Question, object], project: Project) -> bool:
        """True if a question, whose answer in the earlier state is among `answers`, has the same one now."""
        known = self._kept.get(question)
        if known is None:
            known = self._kept[question] = self._keeps(question, answers, project)
        return known

    def _keeps(self, question: Question, answers: Mapping[Question, object], project: Project) -> bool:
        asks, arguments = question.asks, question.arguments
        if question.file is not None:
            return question.file not in self._differences or _answers_same(question, answers, project)
        if asks == "matching":
            pattern = arguments[0]
            assert isinstance(pattern, re.Pattern)
            return self._same_members(answers[question], project, lambda file: file.finds(pattern))
        if asks == "mentioning":
            word = arguments[0]
            assert isinstance(word, str)
            return self._same_members(answers[question], project, lambda file: word in file.text)
        if asks == "naming":
            name = arguments[0]
            assert isinstance(name, str)
            return self._same_members(answers[question], project, lambda file: name in file.last_names)
        if asks == "around":
            module = arguments[0]
            assert isinstance(module, str)
            return self._same_members(answers[question], project, lambda file: is_around(file, module))
        if asks in ("live", "named", "original", "published", "set"):
            return _answers_same(question, answers, project)
        if asks == "importers":
            return self._same_importers(question, answers, project)
        if asks == "added":
            # The files that add folders are the answer to another question of the same run.
            edited = (self._file(path, project) for path in self._differences)
            may_add = self._moves or any(file is not None and file.finds(ADDS_FOLDERS) for file in edited)
            return not may_add or _answers_same(question, answers, project)
        if asks == "light":
            # It depends on imports and on hundreds of lines alone.
            return not self._moves or _answers_same(question, answers, project)
        assert asks == "beside", asks
        searched = arguments[1]
        assert isinstance(searched, re.Pattern)
        # Which files run together depends on imports alone.
        is_same = not self._moves and self._same_members(answers[question], project, lambda file: file.finds(searched))
        return is_same or _answers_same(question, answers, project)

    def words(self, project: Project) -> frozenset[str] | None:
        """The words of the edited files; None if these may enter an answer without its word, or if they are many."""
        if len(self._differences) > _MOST_EDITED:
            return None
        if any(change.outline and path.name == "__init__.py" for path, change in self._differences.items()):
            return None
        files = [file for path in self._differences if (file := self._file(path, project)) is not None]
        return frozenset(word for file in files for word in _WORD.findall(file.text))

    def _same_members(self, answer: object, project: Project, belongs: Callable[[FileText], bool]) -> bool:
        """True if the edited files belong to an answer now if they did before."""
        if not isinstance(answer, tuple):
            # Another process has removed it from the cache.
            return False
        for path in self._differences:
            file = self._file(path, project)
            if (file is not None and belongs(file)) != (path in answer):
                return False
        return True

    def _same_importers(self, question: Question, answers: Mapping[Question, object], project: Project) -> bool:
        module, name = question.arguments
        assert isinstance(module, str) and isinstance(name, str)
        answer = answers[question]
        if not isinstance(answer, tuple):
            return False
        others = [file for path in answer if (file := self._file(path, project)) is not None]
        for path, difference in self._differences.items():
            file = self._file(path, project)
            if path not in answer:
                # The answer is the same without this file, so it alone decides whether it enters.
                if file is not None and uses(file, name, module, others):
                    return False
            elif file is None or not (file.mentions(name) or file.path.name == "__init__.py"):
                return False
            elif difference.outline or not file.mentions(name):
                return _answers_same(question, answers, project)
        return True

    def _file(self, path: Path, project: Project) -> FileText | None:
        """The new text of a file; None if it is not of the project."""
        if path not in self._files:
            self._files[path] = project.file_text(path)
        return self._files[path]


def _answers_same(question: Question, answers: Mapping[Question, object], project: Project) -> bool:
    return project.answer(question) == answers[question]


def changes_of(overlay: Project) -> Changes:
    """The changes that an overlay of a project makes."""
    if overlay.changes is None:
        differences = ((path, _difference(path, overlay)) for path in overlay.changed)
        overlay.changes = Changes({path: found for path, found in differences if found is not None})
    assert isinstance(overlay.changes, Changes)
    return overlay.changes


def _difference(path: Path, overlay: Project) -> Difference | None:
    """The difference between a file of an overlay and the file of the project; None if there is none."""
    base = overlay.base
    before, now = None if base is None else base.file_text(path), overlay.file_text(path)
    if base is None or before is None or now is None:
        return Difference(code=True, outline=True)
    if before.text == now.text:
        return None
    modules = base.module_at(path), overlay.module_at(path)
    codes = [None if module is None else module.code for module in modules]
    return Difference(code=None in codes or codes[0] != codes[1], outline=before.outline != now.outline)
