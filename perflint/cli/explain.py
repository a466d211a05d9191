"""Say what perflint believes of the names and expressions of a line, how often it runs, what each rule
made of it, and why."""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser, Namespace
from contextlib import closing
from pathlib import Path

from perflint.cli import means, options
from perflint.config.errors import ConfigurationError
from perflint.config.settings import Settings
from perflint.engine.cache.caches import Caches
from perflint.engine.explain import Explanation, explain
from perflint.engine.projects import Projects
from perflint.findings import Problem
from perflint.output.explain import explanation_document, explanation_text
from perflint.output.writer import message_text, problem_text
from perflint.rules.registry import RuleSet
from perflint.source.files import is_excluded
from perflint.source.reading import Unreadable, read, read_standard_input
from perflint.source.text import Source

_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d+)(?::(?P<column>\d+))?")


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint explain`."""
    parser.add_argument("place", metavar="FILE:LINE[:COLUMN]", help="line and column count from 1")
    parser.add_argument("--all", action="store_true", help="also say why each rule that looked at the line is silent")
    parser.add_argument("--stdin", action="store_true", help="read the text of FILE from standard input")
    options.add_selection(parser)
    means.add_cache(parser)
    parser.add_argument(
        "--output-format", choices=["text", "json"], default="text", dest="written_as", help="(default: text)"
    )
    options.add_colour(parser)
    parser.set_defaults(exclude=None, extend_exclude=None, stdin_filename=None)


def run(arguments: Namespace) -> int:
    """Explain. 0, or 2 where there is nothing to explain or a rule crashed."""
    path, line, column = _place(arguments.place)
    settings = options.settings(arguments, [path])
    explanation = _explained(path, arguments.stdin, settings, line, column, means.cache_folder(arguments))
    style = options.style(arguments, sys.stderr)
    if isinstance(explanation, Problem):
        sys.stderr.write(problem_text(explanation, style))
        return 2
    if arguments.written_as == "json":
        json.dump(explanation_document(explanation), sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        sys.stdout.write(explanation_text(explanation, options.style(arguments, sys.stdout), arguments.all))
    sys.stdout.flush()
    if is_excluded(path, settings):
        help = "`perflint check` looks at it only where it is named"
        sys.stderr.write(message_text("warning", f"the settings exclude {path}", help, style))
    for problem in explanation.problems:
        sys.stderr.write(problem_text(problem, style))
    return 2 if explanation.problems else 0


def _place(text: str) -> tuple[str, int, int | None]:
    found = _PLACE.fullmatch(text)
    if found is None:
        raise ConfigurationError(f"`{text}` names no line", f"perflint explain {text or 'FILE'}:LINE")
    line, column = int(found["line"]), None if found["column"] is None else int(found["column"])
    if line == 0 or column == 0:
        raise ConfigurationError(f"`{text}`: lines and columns count from 1")
    return found["path"], line, column


def _explained(
    path: str, stdin: bool, settings: Settings, line: int, column: int | None, cache: Path | None
) -> Explanation | Problem:
    try:
        text = read_standard_input(path) if stdin else read(path)
    except Unreadable as error:
        return error.problem
    if text.notebook is not None:
        help = "convert it first: `jupyter nbconvert --to script NOTEBOOK`"
        return Problem(path, "this command does not read notebooks", help=help)
    source = Source(path, text.text)
    try:
        source.tree  # noqa: B018
    except SyntaxError as error:
        version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        help = f"perflint reads the syntax of {version}, which it runs on"
        return Problem(path, f"syntax error: {error.msg}", help=help, line=error.lineno, column=error.offset)
    except (ValueError, RecursionError, MemoryError) as error:
        return Problem(path, f"cannot be parsed: {error or type(error).__name__}")
    projects = Projects(settings)
    with closing(Caches(projects, settings, RuleSet(()), cache)) as caches:
        # It has the calls of other files.
        caches.of(path)
        return explain(source, projects.of(path), settings, line, column)
