"""Say what perflint believes of the names and expressions of a line, how often it runs, what each rule
made of it, and why."""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from perflint.cli import options
from perflint.config.errors import ConfigurationError
from perflint.config.settings import Settings
from perflint.engine.explain import Explanation, explain
from perflint.findings import Problem
from perflint.output.explain import explanation_document, explanation_text
from perflint.output.writer import message_text, problem_text
from perflint.semantics.project import Project
from perflint.source.files import STANDARD_INPUT, is_excluded
from perflint.source.reading import Text, Unreadable, read, read_standard_input
from perflint.source.text import Source

_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d+)(?::(?P<column>\d+))?")


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint explain`."""
    parser.add_argument("place", metavar="FILE:LINE[:COLUMN]", help="line and column count from 1; - is standard input")
    parser.add_argument("--stdin-filename", metavar="PATH", help="the name that standard input goes by")
    options.add_selection(parser)
    parser.add_argument(
        "--output-format", choices=["text", "json"], default="text", dest="written_as", help="(default: text)"
    )
    options.add_colour(parser)
    parser.set_defaults(exclude=None, extend_exclude=None)


def run(arguments: Namespace) -> int:
    """Explain. 0, or 2 where there is nothing to explain or a rule crashed."""
    path, line, column = _place(arguments.place)
    if (arguments.stdin_filename is not None) and path != STANDARD_INPUT:
        raise ConfigurationError("`--stdin-filename` needs `-`", "perflint explain -:LINE --stdin-filename PATH")
    settings = options.settings(arguments, [path])
    name = arguments.stdin_filename or path
    explanation = _explained(path, name, settings, line, column)
    style = options.style(arguments, sys.stderr)
    if isinstance(explanation, Problem):
        sys.stderr.write(problem_text(explanation, style))
        return 2
    if arguments.written_as == "json":
        json.dump(explanation_document(explanation), sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        sys.stdout.write(explanation_text(explanation, options.style(arguments, sys.stdout)))
    sys.stdout.flush()
    if name != STANDARD_INPUT and is_excluded(name, settings):
        help = "it is checked only where it is named"
        sys.stderr.write(message_text("warning", f"the settings exclude {name}", help, style))
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


def _explained(path: str, name: str, settings: Settings, line: int, column: int | None) -> Explanation | Problem:
    try:
        text = _read(path, name)
    except Unreadable as error:
        return error.problem
    source = Source(name, text.text)
    try:
        source.tree  # noqa: B018
    except SyntaxError as error:
        version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        help = f"perflint reads the syntax of {version}, which it runs on"
        return Problem(name, f"syntax error: {error.msg}", help=help, line=error.lineno, column=error.offset)
    except (ValueError, RecursionError, MemoryError) as error:
        return Problem(name, f"cannot be parsed: {error or type(error).__name__}")
    project = Project([Path("stdin.py" if name == STANDARD_INPUT else name)])
    return explain(source, project, settings, line, column)


def _read(path: str, name: str) -> Text:
    return read_standard_input(name) if path == STANDARD_INPUT else read(path)
