"""Checking many files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from perflint.config.settings import Settings
from perflint.engine.file import Judge, check_source
from perflint.engine.projects import Projects
from perflint.findings import Report
from perflint.rules.registry import RuleSet
from perflint.source.files import STANDARD_INPUT
from perflint.source.reading import Text, Unreadable, read, read_standard_input
from perflint.source.text import Source


def check_files(
    files: Sequence[str],
    rules: RuleSet,
    settings: Settings,
    stdin_filename: str | None = None,
    judge: Judge | None = None,
) -> Iterator[tuple[Source, Report]]:
    """Check files one by one, in their order; each comes with what it says.

    "-" is standard input, which goes by `stdin_filename`. Only one file's text and trees are
    held at a time, besides what the project keeps of files that import each other. The text of
    a file that cannot be read is empty.
    """
    projects = Projects(settings)
    for file in files:
        try:
            name, text = _read(file, stdin_filename)
        except Unreadable as error:
            yield Source(file, ""), Report(problems=[error.problem])
            continue
        source = Source(name, text.text)
        project = projects.of(_path(file, stdin_filename))
        yield source, check_source(source, project, rules, settings, judge=judge)


def _path(file: str, stdin_filename: str | None) -> Path:
    return Path(stdin_filename or "stdin.py") if file == STANDARD_INPUT else Path(file)


def _read(file: str, stdin_filename: str | None) -> tuple[str, Text]:
    if file != STANDARD_INPUT:
        return file, read(file)
    name = stdin_filename or STANDARD_INPUT
    return name, read_standard_input(name)
