"""The flake8 plugin: the findings of `perflint check`, at the same places with the same messages.

flake8 imports the plugin and runs it over every file, whatever codes are selected. So this module imports nothing
that takes time, and `flake8_files` is imported for a file in which flake8 may show a code of perflint.
"""

from __future__ import annotations

import ast
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol

from perflint import __version__
from perflint.integrations.flake8_choice import Choice, File

PROFILES = ("default", "pedantic", "audit")

Violation = tuple[int, int, str, type]
"""Line from 1, column from 0 in characters, code and message, and what found it."""


class OptionManager(Protocol):
    """The parts of flake8 that are used, which have no annotations."""

    def add_option(self, *names: str, **arguments: Any) -> None:
        """Add an option."""


class Plugin:
    """perflint for flake8 6 and later."""

    name = "perflint"
    version = __version__
    _choice: ClassVar[Choice]

    def __init__(self, tree: ast.Module, lines: Sequence[str], filename: str) -> None:
        self._tree = tree
        self._lines = lines
        self._path = filename

    @staticmethod
    def add_options(manager: OptionManager) -> None:
        """Offer `--perflint-profile`, on the command line and in flake8's settings."""
        manager.add_option(
            "--perflint-profile",
            choices=PROFILES,
            default=None,
            parse_from_config=True,
            help="The profile of findings to show (default: that of [tool.perflint]). Rules that only a stricter "
            "profile shows can also be turned on one by one: --extend-select TPF502.",
        )

    @classmethod
    def parse_options(cls, manager: OptionManager, options: Namespace, paths: Sequence[str]) -> None:
        """Take flake8's options, before it starts its processes."""
        cls._choice = Choice(options)

    def run(self) -> Iterator[Violation]:
        """The findings of perflint in the file."""
        if not self._choice.may_show(self._path):
            return
        from perflint.integrations.flake8_files import messages

        for line, column, text in messages(File(self._path, "".join(self._lines), self._tree), self._choice):
            yield line, column, text, Plugin
