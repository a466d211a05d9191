"""Fixing one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from perflint.findings import Finding, Problem, Report, Safety
from perflint.fixes.apply import Choice, Outcome, apply_fixes
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.purpose.takers import is_taken
from perflint.source.text import Source

Check = Callable[[str, str, Project], Report]
"""Checks a path's text as a file of a project."""


def fix_text(
    path: str,
    text: str,
    project: Project,
    check: Check,
    safeties: Iterable[Safety],
    choice: Choice | None = None,
    line_length: int | None = None,
) -> tuple[Outcome | None, list[Problem]]:
    """Check a file and apply the fixes of its findings; also gives the problems of the file and of perflint.

    The outcome is None if the file cannot be checked. `choice` selects the fixes. `line_length` is the limit of the
    project's formatter, if known.
    """
    report = check(path, text, project)
    if not report.files:
        return None, report.problems
    crashes = len(report.problems)
    size = project.module_of(Source(path, text)).structure.size if report.findings else 0

    def relint(now: str) -> list[Finding] | None:
        changed = project.overlay({Path(path): now})
        # With more work for a longer text, inference would find more, which is not the harm of a fix.
        changed.sizes = dict.fromkeys(changed.changed, size)
        again = check(path, now, changed)
        return None if len(again.problems) > crashes else again.findings

    def is_used_elsewhere(name: str) -> bool:
        # What a package imports is there for others.
        return os.path.basename(path) == "__init__.py" or is_taken(Model(Source(path, text), project), name)

    outcome = apply_fixes(text, report.findings, relint, frozenset(safeties), choice, is_used_elsewhere, line_length)
    return outcome, report.problems
