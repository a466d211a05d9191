"""The summaries of the files of a project, which are made once and shared by all checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from perflint.frozen import replace
from perflint.semantics.callers.reach import Reach
from perflint.semantics.callers.summary import Summary
from perflint.semantics.changes import changes_of
from perflint.semantics.interpreter.analysis import Analysis
from perflint.semantics.module import Module
from perflint.semantics.project import Project
from perflint.source.changed import changed_lines

_MOST_RECENT = 32
"""Runs of files that are not to be checked, and are kept at a time."""
Make = Callable[[Project, Path, int], Summary | None]
"""Gives the summary of a file of a project in a round; None if the file does not parse."""


class Run(NamedTuple):
    """The run of the interpreter over a file, which each round of its summaries continues."""

    analysis: Analysis
    reach: Reach
    """The files that are asked who calls its functions."""


class SummaryStore(Protocol):
    """Keeps summaries of the files of a project as they are on the disk, beyond this process."""

    def find(self, path: Path, round: int) -> Summary | None:
        """The summary of a file in a round, if it is known and holds."""

    def keep(self, summary: Summary) -> None:
        """Add a summary."""


class Summaries:
    """The summaries of the files of one state of a project, which holds them."""

    def __init__(self) -> None:
        self.store: SummaryStore | None = None
        self._drafted: set[Path] | None = None
        """During a draft, the files whose summaries may not hold."""
        self._known: dict[tuple[Path, int], Summary | None] = {}
        self.awaited: set[Path] = set()
        """The files that are still to be checked: their checks go on from the runs of their summaries."""
        self._runs: dict[Path, Run] = {}
        self._recent: dict[Path, Run] = {}
        """The last runs of other files, from which their summaries of further rounds go on."""

    @contextmanager
    def draft(self) -> Iterator[set[Path]]:
        """Use the summaries from before the edits of an overlay, even if they may not hold.

        Gives a set, to which the files are added whose summaries may not hold.
        """
        drafted: set[Path] = set()
        self._drafted = drafted
        try:
            yield drafted
        finally:
            self._drafted = None

    def of(self, project: Project, path: Path, round: int, make: Make) -> Summary | None:
        """The summary of a file in a round. It follows from the texts alone, so all runs share it."""
        if (path, round) not in self._known:
            found = self._before(project, path, round)
            if found is None and self._drafted is not None and project.base is not None:
                before = summaries(project.base).of(project.base, path, round, make)
                if before is not None:
                    self._drafted.add(path)
                    return _moved(before, project, project.base)
            if found is None:
                found = make(project, path, round)
                if found is not None and self.store is not None:
                    self.store.keep(found)
            self._known[path, round] = found
        return self._known[path, round]

    def keep_run(self, run: Run) -> None:
        """Keep the run that a summary was made from: until the check of its file, or for a while."""
        path = run.analysis.module.path
        if path in self.awaited:
            self._runs[path] = run
            return
        self._recent[path] = run
        if len(self._recent) > _MOST_RECENT:
            del self._recent[next(iter(self._recent))]

    def forget_runs(self) -> None:
        """Forget the runs that no check is to go on from."""
        self._recent.clear()

    def take_run(self, module: Module) -> Run | None:
        """The run that the last summary of a file was made from, if it is kept; for one that goes on from it."""
        path = module.path
        known = self._runs.pop(path, None) or self._recent.pop(path, None)
        return known if known is not None and known.analysis.module is module else None

    def _before(self, project: Project, path: Path, round: int) -> Summary | None:
        """The summary that was made before and still holds: for the project that this is an overlay of, or stored."""
        if project.base is None:
            return None if self.store is None else self.store.find(path, round)
        found = summaries(project.base)._made(project.base, path, round)
        if found is None:
            return None
        return found if changes_of(project).spare(found.record, project) else None

    def _made(self, project: Project, path: Path, round: int) -> Summary | None:
        """The summary of a file, if it is known without making it."""
        known = self._known
        return known[path, round] if (path, round) in known else self._before(project, path, round)


def summaries(project: Project) -> Summaries:
    """The summaries of a project."""
    if project.summaries is None:
        project.summaries = Summaries()
    assert isinstance(project.summaries, Summaries)
    return project.summaries


def _moved(summary: Summary, overlay: Project, base: Project) -> Summary:
    """The summary of a file from before the edits of an overlay, with the calls on the lines that they have now."""
    before, now = base.file_text(summary.path), overlay.file_text(summary.path)
    if before is None or now is None or before.text == now.text:
        return summary
    old, new = before.text.split("\n"), now.text.split("\n")
    after = changed_lines(old, new).stop
    shift = len(new) - len(old)
    calls = {
        callee: tuple(replace(call, line=call.line + shift) if call.line >= after else call for call in every)
        for callee, every in summary.calls.items()
    }
    return replace(summary, calls=calls)
