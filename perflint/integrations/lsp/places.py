"""The projects of open documents under one set of settings, with the texts that are not saved."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path

from perflint.config.settings import Settings
from perflint.engine.active import active_rules
from perflint.engine.cache.caches import Caches
from perflint.engine.file import Judge, check_source
from perflint.engine.projects import Projects
from perflint.engine.sketch import sketch
from perflint.findings import Finding, Report
from perflint.rules.registry import RuleSet
from perflint.semantics.callers.kept import summaries
from perflint.semantics.project import Project
from perflint.source.files import is_excluded
from perflint.source.text import Source


class Stage(Enum):
    """The checks that follow an edit. Each takes longer than the one before, and comes nearer to `perflint check`."""

    SKETCH = "the functions that changed, with the findings of before for the others"
    DRAFT = "the whole file, with the calls in other files from before the edits"
    """Most edits do not change these calls, and following them again takes longer than the check."""
    FINAL = "the findings of `perflint check`"


class Place:
    """Projects as they are on the disk, and above each of them one overlay with the texts of open documents."""

    def __init__(self, settings: Settings, cache: Path | None) -> None:
        """`cache` is the folder of the cache, if there is to be one. Raises ConfigurationError."""
        self.settings = settings
        self.rules: RuleSet = active_rules(settings)
        self._projects = Projects(settings)
        self._caches = Caches(self._projects, settings, self.rules, cache)
        self._overlays: dict[Path, Project] = {}
        self._edited: set[Path] = set()
        """The files whose open text once differed, or that were written while they were open: what the project knows
        of them may be older than the disk.
        """
        self._excluded: dict[str, bool] = {}

    def excludes(self, path: str) -> bool:
        """True if the settings exclude a file."""
        if path not in self._excluded:
            self._excluded[path] = is_excluded(path, self.settings)
        return self._excluded[path]

    def check(
        self,
        source: Source,
        texts: Mapping[str, str],
        stage: Stage = Stage.FINAL,
        known: tuple[Source, Sequence[Finding]] | None = None,
        judge: Judge | None = None,
        is_wanted: Callable[[], bool] | None = None,
    ) -> tuple[Report, Stage]:
        """The report of a document, and the stage that it has reached; `texts` are those of all open documents.

        `known` is a text from before the edit with its findings, which a sketch needs. `judge` gives the findings the
        verdicts of traces. Raises Interrupted in a draft or a final check of edited texts, once `is_wanted` is false.
        """
        project = self.project(source.path, texts)
        base = project.base
        if base is None:
            if judge is None:
                return self._caches.check(source, project), Stage.FINAL
            return check_source(source, project, self.rules, self.settings, judge=judge), Stage.FINAL
        if stage is Stage.SKETCH and known is not None:
            with summaries(project).draft():
                return sketch(*known, source, project, self.rules, self.settings, judge), Stage.SKETCH
        # A draft makes summaries of the files before the edits.
        with project.while_wanted(is_wanted or (lambda: True)):
            if stage is Stage.FINAL:
                return check_source(source, project, self.rules, self.settings, judge=judge), Stage.FINAL
            with summaries(project).draft() as drafted:
                report = check_source(source, project, self.rules, self.settings, judge=judge)
            return report, Stage.DRAFT if drafted else Stage.FINAL

    def project(self, path: str, texts: Mapping[str, str]) -> Project:
        """The project of a document, with the open texts of its files."""
        top = self._projects.top_of(path)
        base = self._projects.at(top)
        # It has the summaries of other files.
        self._caches.of(path)
        changed = {
            Path(name): text
            for name, text in texts.items()
            if self._projects.top_of(name) == top and self._is_edited(base, Path(name), text, name == path)
        }
        known = self._overlays.get(top)
        if not changed:
            self._overlays.pop(top, None)
            return base
        if known is not None and known.changed.keys() <= changed.keys():
            # It has parsed files that the project on the disk has not.
            differing = {file: text for file, text in changed.items() if known.changed.get(file) != text}
            overlay = known.overlay(differing) if differing else known
        else:
            overlay = base.overlay(changed)
        self._overlays[top] = overlay
        return overlay

    def note_written(self, paths: Sequence[str]) -> None:
        """Take the open texts of files for edited, since what the project knows of the disk is older."""
        self._edited.update(map(Path, paths))

    def knows_edits_of(self, path: str) -> bool:
        """True if the project on the disk must be read anew when a document is closed."""
        return Path(path) in self._edited

    def flush(self) -> None:
        """Write results to the cache."""
        self._caches.flush()

    def close(self) -> None:
        """Write results to the cache, and close it."""
        self._caches.close()

    def _is_edited(self, base: Project, path: Path, text: str, is_asked: bool) -> bool:
        if path in self._edited:
            return True
        if not is_asked and os.path.lexists(path) and not base.lists(path):
            # The settings exclude it.
            return False
        if not base.lists(path):
            is_edited = True
        else:
            known = base.file_text(path)
            is_edited = known is None or known.text != text
        if is_edited:
            self._edited.add(path)
        return is_edited
