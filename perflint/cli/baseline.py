"""Write or shorten the baseline: the known findings, which `perflint check` does not show.

The first run writes all findings. Later runs remove the entries that match no finding any more and follow renamed
files. New findings are added only with --add.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from perflint.cli import means, options
from perflint.config.errors import ConfigurationError
from perflint.config.pyproject import OWN_FILES, PYPROJECT, settings_file
from perflint.engine.active import active_rules
from perflint.engine.baseline import Baseline, read_baseline
from perflint.engine.files import check_files
from perflint.findings import Problem
from perflint.output.summary import count
from perflint.output.writer import message_text, problem_text
from perflint.source.files import STANDARD_INPUT, discover
from perflint.source.reading import read

NAME = "perflint-baseline.json"
SETTING = f'baseline = "{NAME}"'
"""The line in the settings that makes `perflint check` use the file; `perflint init` writes it as a comment."""


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint baseline`."""
    options.add_paths(parser)
    options.add_selection(parser)
    means.add_arguments(parser)
    group = parser.add_argument_group("baseline")
    group.add_argument("--baseline", metavar="FILE", help=f"the file (default: that of the settings, or {NAME})")
    group.add_argument("--add", action="store_true")
    options.add_colour(group)


def run(arguments: Namespace) -> int:
    """Write the file. 0 if it has all findings, 1 if there are new ones, 2 if a file could not be checked."""
    paths = options.paths(arguments)
    if paths == [STANDARD_INPUT]:
        raise ConfigurationError("a baseline of standard input is of no use", "name files or folders")
    settings = options.settings(arguments, paths)
    rules = active_rules(settings)
    options.warn_without_rules(rules, settings, arguments)
    style = options.style(arguments, sys.stderr)
    path = Path(settings.root, settings.baseline or NAME)
    is_new = not os.path.lexists(path)
    baseline = Baseline(path, settings.profile) if is_new else read_baseline(path)
    if baseline.profile is not settings.profile:
        option = f"--profile {baseline.profile.value}"
        raise ConfigurationError(f"{path} was written with `{option}`", f"pass `{option}`, or remove the file")
    found = discover(paths, settings, arguments.force_exclude, notebooks=True)
    problems: list[Problem] = list(found.problems)
    with means.means(arguments) as ways:
        for source, part in check_files(found.files, rules, settings, means=ways):
            problems += part.problems
            baseline.sift(source, part)
    codes = {rule.code for rule in rules.rules}
    now = baseline.updated(codes, add=is_new or arguments.add)
    for problem in problems:
        sys.stderr.write(problem_text(problem, style))
    try:
        now.write()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}") from None
    new = sum(sum(entries.values()) for entries in baseline.new.values())
    is_left = bool(new) and not (is_new or arguments.add)
    sys.stdout.write(_told(path, baseline, now, codes, new, is_left))
    if is_new and (settings.baseline is None or arguments.baseline is not None):
        if arguments.baseline is None and (used_by := _switch_on(settings.root)):
            sys.stdout.write(f"{used_by}: {SETTING}\n")
        else:
            setting = f'`baseline = "{os.path.relpath(path, settings.root)}"`'
            help = f"{setting} in {_settings(settings.root)}, or `--baseline {os.path.relpath(path)}`"
            sys.stderr.write(message_text("note", "`perflint check` does not use the baseline yet", help, style))
    return 2 if problems else 1 if is_left else 0


def _settings(root: str) -> str:
    """The place of the settings of a project, in words."""
    file = settings_file(root)
    name = PYPROJECT if file is None else os.path.basename(file)
    return f"[tool.perflint] of {name}" if name == PYPROJECT else name


def _switch_on(root: str) -> Path | None:
    """Take the # from the setting that `perflint init` wrote; the file, or None if there is no such comment."""
    from perflint.cli.fix import write_fixed

    for name in (*OWN_FILES, PYPROJECT):
        path = Path(root, name)
        if not path.is_file():
            continue
        text = read(str(path))
        lines = text.text.splitlines(keepends=True)
        for index, line in enumerate(lines):
            if line.strip() == f"# {SETTING}":
                changed = "".join([*lines[:index], line.replace("# ", "", 1), *lines[index + 1 :]])
                if _is_switched_on(text.text, changed, name in OWN_FILES):
                    return path if write_fixed(str(path), text, changed) is None else None
    return None


def _is_switched_on(before: str, after: str, is_own: bool) -> bool:
    """True if a changed text has the setting, and else the same values.

    The comment may stand in another table now. A line of a multi-line string may look like it.
    """
    import tomllib

    try:
        old, new = map(tomllib.loads, (before, after))
    except ValueError:
        return False
    own: object = new
    for part in () if is_own else ("tool", "perflint"):
        own = own.get(part) if isinstance(own, dict) else None
    return isinstance(own, dict) and own.pop("baseline", None) == NAME and old == new


def _told(path: Path, before: Baseline, now: Baseline, codes: set[str], new: int, is_left: bool) -> str:
    """The sentence about the file, with its changes."""
    removed = before.stale(codes)
    changes = [f"{removed} removed"] if removed else []
    if new:
        changes.append(f"{new} new, which `--add` adds" if is_left else f"{new} added")
    more = f" ({', '.join(changes)})" if changes else ""
    return f"{path}: {count(now.size(), 'finding')}{more}.\n"
