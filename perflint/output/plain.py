"""Texts and paths of findings for other programs."""

from __future__ import annotations

import os

from perflint.findings import Finding, Problem
from perflint.output.summary import verdict_text
from perflint.output.terminal import printable
from perflint.source.repository import repository_of


def repository_path(path: str) -> str:
    """A path relative to the root of the git repository, or else to the working directory, with "/" between names.

    Paths outside of both stay as they are.
    """
    absolute = os.path.abspath(path)
    root = repository_of(os.path.dirname(absolute)) or os.getcwd()
    try:
        relative = os.path.relpath(absolute, root)
    except ValueError:
        # Another drive.
        return path.replace(os.sep, "/")
    relative = relative.replace(os.sep, "/")
    return path.replace(os.sep, "/") if relative.startswith("../") else relative


def sentences(finding: Finding) -> list[str]:
    """The message, the verdict of a trace and the help of a finding, each in a printable line."""
    lines = [finding.message]
    if finding.verdict is not None:
        lines.append(f"trace: {verdict_text(finding.verdict)}")
    if finding.help:
        lines.append(f"help: {finding.help}")
    return [printable(line) for line in lines]


def problem_sentences(problem: Problem) -> list[str]:
    """The message and the help of a problem, each in a printable line."""
    lines = [problem.message, *([f"help: {problem.help}"] if problem.help else [])]
    return [printable(line) for line in lines]
