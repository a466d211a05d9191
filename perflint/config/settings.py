"""The settings of a run, and what one place (a file, the command line) says of them."""

from __future__ import annotations

import os
import re
from dataclasses import field
from enum import Enum

from perflint.config.errors import ConfigurationError
from perflint.config.patterns import Patterns
from perflint.config.selection import Selection
from perflint.frozen import dataclass

DEFAULT_EXCLUDES = (
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".hg",
    ".hypothesis",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".perflint_cache",
    ".pyenv",
    ".pytest_cache",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "__pycache__",
    "__pypackages__",
    "_build",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)

Version = tuple[int, int]
PerFileIgnores = tuple[tuple[str, tuple[str, ...]], ...]


class Profile(Enum):
    """How much is shown."""

    DEFAULT = "default"
    """Medium confidence and up, not cold, not info."""
    PEDANTIC = "pedantic"
    """Also cold code and info."""
    AUDIT = "audit"
    """Everything."""


class OutputFormat(Enum):
    """How findings are written."""

    FULL = "full"
    CONCISE = "concise"
    GROUPED = "grouped"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of one place; None or empty for those that it does not set."""

    selection: Selection = Selection()
    profile: Profile | None = None
    torch_version: Version | None = None
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    per_file_ignores: PerFileIgnores = ()
    output_format: OutputFormat | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run; by default, those of a project that says nothing.

    `root` is the folder, absolute, that patterns are relative to. `torch_version` is the oldest
    torch that the code must run with; None stands for the newest.
    """

    selections: tuple[Selection, ...] = ()
    profile: Profile = Profile.DEFAULT
    torch_version: Version | None = None
    exclude: tuple[str, ...] = DEFAULT_EXCLUDES
    per_file_ignores: PerFileIgnores = ()
    output_format: OutputFormat = OutputFormat.FULL
    root: str = field(default_factory=os.getcwd)

    def relative(self, path: str) -> str | None:
        """A path relative to the root, with "/" between names; None for paths outside it."""
        relative = os.path.relpath(os.path.abspath(path), self.root).replace(os.sep, "/")
        return None if relative == ".." or relative.startswith("../") else relative

    def ignored_selectors(self, path: str) -> tuple[str, ...]:
        """The selectors that `per-file-ignores` turns off in a file."""
        if not self.per_file_ignores:
            return ()
        relative = self.relative(path)
        return tuple(
            selector
            for pattern, selectors in self.per_file_ignores
            if relative is not None and Patterns([pattern]).covers(relative)
            for selector in selectors
        )


def combine(file: Options, command_line: Options, root: str | None = None) -> Settings:
    """The settings that a file and the command line make, on top of the defaults."""
    base = command_line.exclude if command_line.exclude is not None else file.exclude
    return Settings(
        selections=(file.selection, command_line.selection),
        profile=command_line.profile or file.profile or Profile.DEFAULT,
        torch_version=command_line.torch_version or file.torch_version,
        exclude=(
            *(DEFAULT_EXCLUDES if base is None else base),
            *file.extend_exclude,
            *command_line.extend_exclude,
        ),
        per_file_ignores=(*file.per_file_ignores, *command_line.per_file_ignores),
        output_format=command_line.output_format or file.output_format or OutputFormat.FULL,
        root=root or os.getcwd(),
    )


def parse_version(text: str, where: str) -> Version:
    """The major and minor number of a torch version such as 2.6 or 2.6.1; ConfigurationError otherwise."""
    found = re.fullmatch(r"(\d{1,9})\.(\d{1,9})(?:\.\d+)?(?:[-+a-z]\S*|\.\*)?", text)
    if found is None:
        raise ConfigurationError(f"`{text}` is no torch version ({where})", "write it as 2.6 or 2.6.1")
    return int(found.group(1)), int(found.group(2))
