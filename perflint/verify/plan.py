"""The fixes of a project, each of which may be chosen or left out."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from perflint.engine.fixing import Check, fix_text
from perflint.engine.projects import Projects
from perflint.findings import Finding, Problem, Safety
from perflint.fixes.apply import Choice, Outcome, Skipped
from perflint.frozen import dataclass, field
from perflint.source.reading import Text, Unreadable, read


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fix of a rule in a line of the text as it is; two of them there are one."""

    path: str
    line: int
    code: str
    name: str
    safety: Safety
    message: str = field(compare=False)
    """The message of the finding, which may change with the code around it."""


Chosen = frozenset[Candidate]


class Plan:
    """The changes of `perflint fix` to some files, all or a part of them."""

    def __init__(
        self,
        files: Sequence[str],
        check: Check,
        projects: Projects,
        safeties: Collection[Safety],
        line_length: int | None = None,
    ) -> None:
        self.problems: list[Problem] = []
        self.skipped: list[Skipped] = []
        """The fixes that `perflint fix` would leave out."""
        self.texts: dict[str, Text] = {}
        """The files with candidates, as they are."""
        self._check = check
        self._safeties = frozenset(safeties)
        self._projects = projects
        self._line_length = line_length
        self._known: dict[tuple[str, Chosen], str] = {}
        self.candidates: Chosen = frozenset().union(*map(self._look, files))

    def changed(self, chosen: Chosen) -> dict[str, str]:
        """The new texts of the files that some candidates change."""
        return {path: text for path in self.texts if (text := self._changed(path, chosen)) != self.texts[path].text}

    def encoded(self, chosen: Chosen) -> Mapping[str, bytes]:
        """The same as bytes. Raises UnicodeEncodeError where a file's encoding cannot hold its text."""
        return {path: self.texts[path].encode(text) for path, text in self.changed(chosen).items()}

    def _look(self, path: str) -> Chosen:
        """The candidates of a file: the fixes that are applied where all may be."""
        try:
            text = read(path)
        except Unreadable as error:
            self.problems.append(error.problem)
            return frozenset()
        seen: dict[Finding, Candidate] = {}

        def take_all(finding: Finding, now: str) -> bool:
            if finding.fix is not None:
                seen[finding] = _candidate(path, finding, finding.fix.safety, text.text, now)
            return True

        outcome, problems = self._fix(path, text, take_all)
        self.problems += problems
        if outcome is None or not outcome.applied:
            return frozenset()
        self.skipped += outcome.skipped
        self.texts[path] = text
        found = frozenset(seen[finding] for finding in outcome.applied)
        self._known[path, found] = outcome.text
        return found

    def _changed(self, path: str, chosen: Chosen) -> str:
        text = self.texts[path]
        own = frozenset(candidate for candidate in chosen if candidate.path == path)

        def take_own(finding: Finding, now: str) -> bool:
            return finding.fix is not None and _candidate(path, finding, finding.fix.safety, text.text, now) in own

        if not own:
            return text.text
        if (path, own) not in self._known:
            outcome, _ = self._fix(path, text, take_own)
            self._known[path, own] = text.text if outcome is None else outcome.text
        return self._known[path, own]

    def _fix(self, path: str, text: Text, choice: Choice) -> tuple[Outcome | None, list[Problem]]:
        project = self._projects.of(path)
        return fix_text(path, text.text, project, self._check, self._safeties, choice, self._line_length)


def _candidate(path: str, finding: Finding, safety: Safety, original: str, now: str) -> Candidate:
    line = finding.span.line
    if now != original:
        lines = _lines_before(original, now)
        line = lines[min(line, len(lines)) - 1]
    return Candidate(path, line, finding.code, finding.name, safety, finding.message)


@lru_cache(maxsize=8)
def _lines_before(original: str, now: str) -> list[int]:
    """For each line of a text the line that it was, counted from 1; for a new one the line that it stands for."""
    before, after = original.splitlines(), now.splitlines()
    lines: list[int] = []
    for _, start, end, _, new_end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        last = max(end - 1, start)
        while len(lines) < new_end:
            lines.append(min(start, last) + 1)
            start += 1
    return lines or [1]
