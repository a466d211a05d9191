"""Explain a line: the values of its names and expressions, how often it runs, the decision of each rule, and the
reasons."""

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
from perflint.engine.file import unparsable
from perflint.engine.projects import Projects
from perflint.findings import Problem
from perflint.frozen import dataclass
from perflint.output.explain import explanation_document, explanation_text
from perflint.output.notebooks import problem_in_cell
from perflint.output.writer import message_text, problem_text
from perflint.rules.registry import RuleSet
from perflint.source.files import is_excluded
from perflint.source.notebooks import Notebook
from perflint.source.reading import NOTEBOOK, Unreadable, read, read_standard_input
from perflint.source.text import Source

_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d+)(?::(?P<column>\d+))?")
_IN_NOTEBOOK = re.compile(
    rf"(?P<path>.+?{re.escape(NOTEBOOK)}):(?:cell )?(?P<cell>\d+):(?P<line>\d+)(?::(?P<column>\d+))?"
)


@dataclass(frozen=True, slots=True)
class _Place:
    """A line of a file, or of a cell of a notebook."""

    path: str
    cell: int | None
    line: int
    column: int | None


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint explain`."""
    parser.add_argument("place", metavar="FILE:LINE[:COLUMN]")
    parser.add_argument("--all", action="store_true", help="also say why each rule that looked at the line is silent")
    parser.add_argument("--stdin", action="store_true")
    options.add_selection(parser)
    means.add_cache(parser)
    parser.add_argument(
        "--output-format", choices=["text", "json"], default="text", dest="written_as", help="(default: text)"
    )
    options.add_colour(parser)
    parser.set_defaults(exclude=None, extend_exclude=None, stdin_filename=None)


def run(arguments: Namespace) -> int:
    """Explain. 0, or 2 where there is nothing to explain or a rule crashed."""
    place = _place(arguments.place)
    path = place.path
    settings = options.settings(arguments, [path])
    explanation = _explained(place, arguments.stdin, settings, means.cache_folder(arguments))
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


def _place(text: str) -> _Place:
    found = _IN_NOTEBOOK.fullmatch(text) or _PLACE.fullmatch(text)
    path = "" if found is None else found["path"]
    if found is None or (path.endswith(NOTEBOOK) and "cell" not in found.groupdict()):
        file, dot, _ = text.partition(".py:")
        form = f"{path or text}:CELL:LINE" if NOTEBOOK in text else f"{file + dot.rstrip(':') or 'FILE'}:LINE"
        raise ConfigurationError(f"`{text}` names no line", f"perflint explain {form}")
    numbers = {name: int(number) for name, number in found.groupdict().items() if name != "path" and number is not None}
    if not all(numbers.values()):
        raise ConfigurationError(f"`{text}`: {'cells, ' if 'cell' in numbers else ''}lines and columns count from 1")
    return _Place(path, numbers.get("cell"), numbers["line"], numbers.get("column"))


def _line_of(place: _Place, notebook: Notebook) -> int:
    """The line of the text of a notebook. Raises ConfigurationError if there is no such line."""
    codes = {cell.number: cell.source for cell in notebook.cells}
    if place.cell not in codes:
        known = ", ".join(map(str, codes))
        raise ConfigurationError(
            f"{place.path} has no cell {place.cell} with code", f"cells with code: {known or 'none'}"
        )
    last = len(codes[place.cell].splitlines())
    if place.line > last:
        raise ConfigurationError(
            f"cell {place.cell} of {place.path} has no line {place.line}", f"its last line is {last}"
        )
    return notebook.line(place.cell, place.line)


def _explained(place: _Place, stdin: bool, settings: Settings, cache: Path | None) -> Explanation | Problem:
    path = place.path
    try:
        text = read_standard_input(path) if stdin else read(path)
    except Unreadable as error:
        return error.problem
    line = place.line if text.notebook is None else _line_of(place, text.notebook)
    source = Source(path, text.text, notebook=text.notebook)
    problem = unparsable(source)
    if problem is not None:
        return problem_in_cell(problem, text.notebook)
    projects = Projects(settings)
    with closing(Caches(projects, settings, RuleSet(()), cache)) as caches:
        # It has the calls of other files.
        caches.of(path)
        return explain(source, projects.of(path), settings, line, place.column)
