"""The flake8 plugin: the findings of `perflint check`, at the same places with the same messages.

It checks the tree that flake8 has parsed. [tool.perflint] of each file's project holds here too,
and so do its baseline and `# perflint: ignore`; `# noqa`, `--select` and `--ignore` are flake8's own.
"""

from __future__ import annotations

import ast
import os
import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol

from perflint import __version__
from perflint.config.errors import ConfigurationError
from perflint.config.outside import places
from perflint.config.settings import Options, Profile, Settings, combine
from perflint.engine.active import active_rules
from perflint.engine.baseline import Baseline, read_baseline
from perflint.engine.file import check_source
from perflint.engine.profiles import shows
from perflint.engine.projects import Projects
from perflint.findings import Finding
from perflint.frozen import dataclass, replace
from perflint.output.terminal import printable
from perflint.rules.registry import RuleSet, names
from perflint.source.files import is_excluded
from perflint.source.text import Source

FAULT = "TPF000"
"""The code of faults of the settings and of perflint."""

_HOUSE_CODE = r"(?!TPF)[A-Z]{2,4}[0-9]{3}"
"""The form of the codes of house rules, which are known once a file of their project is checked."""
_STANDARD_INPUT = "-"

Violation = tuple[int, int, str, type]
"""Line from 1, column from 0 in characters, code and message, and what found it."""


class OptionManager(Protocol):
    """The parts of flake8 that are used, which have no annotations."""

    def add_option(self, *names: str, **arguments: Any) -> None:
        """Add an option."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """The settings from flake8's options: the profile, and the codes in `--select` and `--extend-select`."""

    profile: Profile | None = None
    codes: frozenset[str] = frozenset()
    stdin_name: str = "stdin"


class Plugin:
    """perflint for flake8 6 and later."""

    name = "perflint"
    version = __version__
    _choice: ClassVar[_Choice] = _Choice()

    def __init__(self, tree: ast.Module, lines: Sequence[str], filename: str) -> None:
        self._tree = tree
        self._text = "".join(lines)
        self._path = self._choice.stdin_name if filename == _STANDARD_INPUT else filename

    @staticmethod
    def add_options(manager: OptionManager) -> None:
        """Offer `--perflint-profile`, on the command line and in flake8's settings."""
        manager.add_option(
            "--perflint-profile",
            choices=[profile.value for profile in Profile],
            default=None,
            parse_from_config=True,
            help="The profile of findings to show (default: that of [tool.perflint]). Rules that only a stricter "
            "profile shows can also be turned on one by one: --extend-select TPF502.",
        )

    @classmethod
    def parse_options(cls, manager: OptionManager, options: Namespace, paths: Sequence[str]) -> None:
        """Take flake8's options, before it starts its processes."""
        chosen = {*(options.select or ()), *(options.extend_select or ())}
        cls._choice = _Choice(
            profile=Profile(options.perflint_profile) if options.perflint_profile else None,
            codes=frozenset(each for each in chosen if each in names() or re.fullmatch(_HOUSE_CODE, each)),
            stdin_name=options.stdin_display_name,
        )

    def run(self) -> Iterator[Violation]:
        """The findings of perflint in the file."""
        try:
            place = _place(os.path.dirname(os.path.abspath(self._path)), self._choice.profile)
        except ConfigurationError as error:
            yield _fault(1, f"{error.message}; {error.help}" if error.help else error.message)
            return
        # A code that is spelt out is shown as the pedantic profile does; the others must not be.
        settings = (
            replace(place.settings, profile=_milder(place.settings.profile)) if self._choice.codes else place.settings
        )
        project = _projects(place.settings).of(self._path)
        source = Source(self._path, self._text, self._tree)
        report = check_source(source, project, place.rules, settings, noqa=False)
        for problem in report.problems:
            yield _fault(problem.line or 1, problem.message)
        report.findings = self._wanted(report.findings, place.settings)
        if report.findings and place.baseline is not None:
            place.baseline.sift(source, report)
        for finding in report.findings:
            yield finding.span.line, finding.span.column - 1, f"{finding.code} {printable(finding.message)}", Plugin

    def _wanted(self, findings: list[Finding], settings: Settings) -> list[Finding]:
        wanted = [f for f in findings if f.code in self._choice.codes or shows(settings.profile, f)]
        # Looking for what is excluded takes longer than most files do.
        return [] if wanted and is_excluded(self._path, settings) else wanted


def _fault(line: int, message: str) -> Violation:
    return line, 0, f"{FAULT} {printable(message)}", Plugin


def _milder(profile: Profile) -> Profile:
    return profile if profile is Profile.AUDIT else Profile.PEDANTIC


@dataclass(frozen=True, slots=True)
class _Place:
    """The settings for the files of a folder."""

    settings: Settings
    rules: RuleSet
    baseline: Baseline | None


@cache
def _place(folder: str, profile: Profile | None) -> _Place:
    """The settings of a folder's project. Raises ConfigurationError."""
    found, root = places([folder])
    settings = combine(*found, Options(profile=profile), root=root)
    baseline = None if settings.baseline is None else _baseline(Path(settings.root, settings.baseline))
    return _Place(settings, _rules(settings), baseline)


@cache
def _baseline(path: Path) -> Baseline:
    """The known findings of a project, shared by all files that this process checks. Raises ConfigurationError."""
    return read_baseline(path)


@cache
def _rules(settings: Settings) -> RuleSet:
    return active_rules(settings)


@cache
def _projects(settings: Settings) -> Projects:
    """The projects of the files of this process: each process of flake8 has its own."""
    return Projects(settings)
