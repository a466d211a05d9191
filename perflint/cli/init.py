"""Look at the project once, and write settings that fit it.

They go to [tool.perflint] at the end of pyproject.toml, or to perflint.toml if there is none.
"""

from __future__ import annotations

import os
import sys
import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from perflint.cli import options
from perflint.cli.baseline import SETTING
from perflint.cli.fix import write_fixed
from perflint.config.errors import ConfigurationError
from perflint.config.kinds import quoted
from perflint.config.outside import places
from perflint.config.patterns import literal
from perflint.config.pyproject import OWN_FILES, PYPROJECT, settings_file
from perflint.config.settings import Settings, combine
from perflint.source.files import discover
from perflint.source.reading import Unreadable, read
from perflint.source.writing import whole

_OTHERS = ("third_party", "third-party", "thirdparty", "vendor", "vendored", "external", "extern", "submodules")
"""Names of folders with code of others."""
_GENERATED = ("_pb2.py", "_pb2_grpc.py")
_TESTS = ("tests", "test")


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint init`."""
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR")
    parser.add_argument("--print", action="store_true")
    options.add_colour(parser)


def run(arguments: Namespace) -> int:
    """Write settings. Raises ConfigurationError if there are some already."""
    folder = Path(arguments.folder)
    if not folder.is_dir():
        raise ConfigurationError(f"{folder} is not a folder")
    found, root = places([str(folder)])
    if root is not None and os.path.realpath(root) == os.path.realpath(folder):
        file = os.path.relpath(settings_file(root) or root)
        raise ConfigurationError(f"{file} already configures perflint", "`perflint config` shows it")
    settings = combine(*found, root=str(folder.absolute()))
    lines = list(_settings(folder, settings))
    if arguments.print:
        sys.stdout.write("\n".join(lines) + "\n")
        return 0
    written = _write(folder, lines)
    sys.stdout.write(f"{written}:\n" + "".join(f"  {line}".rstrip() + "\n" for line in lines))
    return 0


def _settings(folder: Path, settings: Settings) -> Iterator[str]:
    """The lines of the table, with the reason of each."""
    listed = discover([str(folder)], settings)
    files = [os.path.relpath(file, folder).replace(os.sep, "/") for file in listed.files]
    if settings.torch_version is None:
        yield "# The oldest torch that the code must run with; the project states none."
        yield '# torch-version = "2.6"'
    else:
        yield f"# The project allows torch {'.'.join(map(str, settings.torch_version))} and newer."
    generated = [f"*{end}" for end in _GENERATED if any(file.endswith(end) for file in files)]
    others = _folders(files, _OTHERS)
    exclude = [*others, *generated]
    if exclude:
        yield "# Code of others, and generated code."
        yield f"extend-exclude = [{', '.join(map(quoted, (*map(literal, others), *generated)))}]"
    tests = _folders(files, _TESTS)
    yield "# `perflint baseline` writes the findings of today to a file and takes the # from the"
    yield "# next line: `perflint check` then shows only new ones."
    yield f"# {SETTING}"
    if tests:
        yield ""
        yield "[tool.perflint.per-file-ignores]"
        yield "# Tests may read every number."
        yield from (f'{quoted(f"{literal(name)}/**")} = ["ALL"]' for name in tests)


def _folders(files: list[str], names: tuple[str, ...]) -> list[str]:
    """The folders of some names that hold files, the outermost of each kind, by path."""
    found: dict[str, None] = {}
    for file in files:
        parts = file.split("/")[:-1]
        at = next((index for index, part in enumerate(parts) if part in names), None)
        if at is not None:
            found["/".join(parts[: at + 1])] = None
    return sorted(found)


def _write(folder: Path, lines: list[str]) -> Path:
    """Write the settings, and give the file. Raises ConfigurationError if it cannot be written."""
    path = folder / PYPROJECT
    try:
        if not path.exists():
            path = folder / OWN_FILES[0]
            own = [line.replace("[tool.perflint.", "[") for line in lines]
            with whole(path) as file:
                file.write(("\n".join(own) + "\n").encode())
            return path
        text = read(str(path))
    except Unreadable as error:
        raise ConfigurationError(f"{path}: {error.problem.message}") from None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}") from None
    before = text.text
    newline = "\r\n" if "\r\n" in before else "\n"
    gap = "" if not before else newline if before.endswith("\n") else newline * 2
    after = before + gap + newline.join(["[tool.perflint]", *lines]) + newline
    try:
        # A table at the end is not allowed behind `tool = {black = {}}`.
        tomllib.loads(after)
    except ValueError as error:
        help = "`perflint init --print` prints the settings, for perflint.toml or another place"
        raise ConfigurationError(f"{path} is not valid TOML with [tool.perflint] at its end: {error}", help) from None
    problem = write_fixed(str(path), text, after)
    if problem is not None:
        raise ConfigurationError(f"{path}: {problem.message}", problem.help)
    return path
