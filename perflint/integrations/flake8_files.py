"""The checks of the flake8 plugin.

They check the tree that flake8 has parsed, unless the cache has the report of the file. [tool.perflint] of each file's
project holds here too, and so do its baseline and `# perflint: ignore`; `# noqa`, `--select` and `--ignore` are
flake8's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path

from perflint.config.errors import ConfigurationError
from perflint.config.outside import places
from perflint.config.settings import Options, Profile, Settings, combine
from perflint.engine.active import active_rules
from perflint.engine.baseline import Baseline, read_baseline
from perflint.engine.cache.caches import Caches
from perflint.engine.cache.places import user_folder
from perflint.engine.profiles import shows
from perflint.engine.projects import Projects
from perflint.findings import Finding, Report
from perflint.frozen import dataclass, replace
from perflint.integrations.flake8_choice import CODES, Choice, File
from perflint.output.terminal import printable
from perflint.source.files import is_excluded
from perflint.source.text import Source

FAULT = f"{CODES}000"
"""The code of faults of the settings and of perflint."""

Message = tuple[int, int, str]
"""Line from 1, column from 0 in characters, code and message."""


def messages(file: File, choice: Choice) -> Iterator[Message]:
    """The findings in a file, and the faults of the settings and of perflint."""
    try:
        place = _place(os.path.dirname(os.path.abspath(file.path)), choice.profile)
        # A code that is spelt out is shown as the pedantic profile does; the others must not be.
        codes = choice.selected & place.codes
        settings = replace(place.settings, profile=_milder(place.settings.profile)) if codes else place.settings
        checks = _checks(settings)
    except ConfigurationError as error:
        yield _fault(1, f"{error.message}; {error.help}" if error.help else error.message)
        return
    source = Source(file.path, file.text, file.tree)
    report = checks.report(source, choice.is_on_disk(file.path))
    for problem in report.problems:
        yield _fault(problem.line or 1, problem.message)
    report.findings = [f for f in report.findings if f.code in codes or shows(place.settings.profile, f)]
    # Looking for what is excluded takes longer than most files do.
    if not report.findings or is_excluded(file.path, place.settings):
        return
    if place.baseline is not None:
        place.baseline.sift(source, report)
    yield from map(_message, report.findings)


def _message(finding: Finding) -> Message:
    return finding.span.line, finding.span.column - 1, f"{finding.code} {printable(finding.message)}"


def _fault(line: int, message: str) -> Message:
    return line, 0, f"{FAULT} {printable(message)}"


def _milder(profile: Profile) -> Profile:
    return profile if profile is Profile.AUDIT else Profile.PEDANTIC


@dataclass(frozen=True, slots=True)
class _Place:
    """The settings for the files of a folder."""

    settings: Settings
    codes: frozenset[str]
    """The codes of the rules that the settings turn on."""
    baseline: Baseline | None


@cache
def _place(folder: str, profile: str | None) -> _Place:
    """The settings of a folder's project. Raises ConfigurationError."""
    found, root = places([folder])
    settings = combine(*found, Options(profile=Profile(profile) if profile else None), root=root)
    baseline = None if settings.baseline is None else _baseline(Path(settings.root, settings.baseline))
    return _Place(settings, frozenset(rule.code for rule in active_rules(settings).rules), baseline)


@cache
def _baseline(path: Path) -> Baseline:
    """The known findings of a project, shared by all files that this process checks. Raises ConfigurationError."""
    return read_baseline(path)


class _Checks:
    """The checks of this process under some settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._rules = active_rules(settings)
        self._projects = Projects(settings)
        self._caches = Caches(self._projects, settings, self._rules, user_folder(), noqa=False)
        # Runs at the end of flake8's processes, too.
        Finalize(None, self._caches.close, exitpriority=0)

    def report(self, source: Source, on_disk: bool) -> Report:
        """The report of a file, known or made now."""
        project = self._projects.of(source.path)
        if on_disk:
            return self._caches.check(source, project)
        # The text is not that of the disk, but the cache has the calls of other files.
        self._caches.of(source.path)
        from perflint.engine.file import check_source

        return check_source(source, project, self._rules, self._settings, noqa=False)


_checks = cache(_Checks)
"""The checks under some settings, which share a project between files."""
