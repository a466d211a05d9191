"""The findings that a change causes on lines that it does not touch: the files are checked as they were, too."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from perflint.config.settings import Settings
from perflint.engine.file import check_source
from perflint.engine.fingerprints import fingerprint
from perflint.engine.projects import Projects
from perflint.frozen import dataclass
from perflint.rules.registry import RuleSet
from perflint.semantics.project import Project
from perflint.source.reading import Unreadable, decode
from perflint.source.text import Source

Known = Counter[tuple[str, str]]
"""How often each pair of code and fingerprint occurs in a file."""


@dataclass(frozen=True, slots=True)
class Past:
    """The Python files that a change touches, as they were: the bytes of each by its path, none of new ones."""

    texts: Mapping[str, bytes]
    names: Mapping[str, str]
    """The old path of each file that was renamed."""


class Effects:
    """Checks files as they were before a change."""

    def __init__(self, settings: Settings, rules: RuleSet) -> None:
        self._settings = settings
        self._rules = rules
        self._projects = Projects(settings)
        self._overlays: dict[tuple[int, int], Project] = {}

    def before(self, now: Source, past: Past) -> Known:
        """The findings that a file had; none if it is new."""
        path = os.path.realpath(now.path)
        old = past.names.get(path, path)
        text = _decoded(past.texts[old], old) if old in past.texts else now.text
        source = Source(old if old != path else now.path, text)
        report = check_source(source, self._overlay(now.path, past), self._rules, self._settings)
        return Counter((finding.code, fingerprint(finding, source)) for finding in report.findings)

    def _overlay(self, path: str, past: Past) -> Project:
        """The project of a file as it was."""
        project = self._projects.of(path)
        key = (id(project), id(past))
        if key not in self._overlays:
            texts = {Path(name): _decoded(data, name) for name, data in past.texts.items()}
            self._overlays[key] = project.overlay(texts)
        return self._overlays[key]


def _decoded(data: bytes, path: str) -> str:
    """The text of a file; empty if it is not text."""
    try:
        return decode(data, path).text
    except Unreadable:
        return ""
