"""The flake8 plugin: the findings of `perflint check`, at the same places with the same messages.

flake8 imports the plugin and runs it over every file, whatever codes are selected. So this module imports nothing
that takes time, and `flake8_files` is imported for a file in which flake8 may show a code of perflint.
"""

from __future__ import annotations

import ast
import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

from perflint import __version__

CODES = "TPF"
"""The beginning of perflint's codes, and the name under which flake8 knows the plugin."""
PROFILES = ("default", "pedantic", "audit")

_HOUSE_CODE = re.compile(r"(?!TPF)[A-Z]{2,4}[0-9]{0,3}")
"""A code of house rules, or the beginning of some: the rules are known once a file of their project is checked."""
_STANDARD_INPUT = "-"

Violation = tuple[int, int, str, type]
"""Line from 1, column from 0 in characters, code and message, and what found it."""


class OptionManager(Protocol):
    """The parts of flake8 that are used, which have no annotations."""

    def add_option(self, *names: str, **arguments: Any) -> None:
        """Add an option."""


class File(NamedTuple):
    """A file as flake8 has read it."""

    path: str
    text: str
    tree: ast.Module


class Choice:
    """The choices that flake8's options make."""

    def __init__(self, options: Namespace) -> None:
        self._options = options
        self.profile: str | None = options.perflint_profile
        self.selected = frozenset([*(options.select or ()), *(options.extend_select or ())])
        """The codes, and beginnings of codes, in `--select` and `--extend-select`."""

    def may_show(self, path: str) -> bool:
        """True if flake8 may show a code of perflint, or of house rules, in a file.

        Whether a code is shown depends on the longest beginnings of it that are selected and ignored. So it is enough
        to ask for `TPF` and for each longer text that is selected: all other codes are shown if one of these is.
        """
        guide = self._guides.style_guide_for(path)
        return any(guide.should_report_error(code).name == "Selected" for code in self._codes)

    def is_on_disk(self, path: str) -> bool:
        """True if the text of a file comes from the disk, not from standard input under its name."""
        return _STANDARD_INPUT not in self._options.filenames or path != self._options.stdin_display_name

    @cached_property
    def _codes(self) -> list[str]:
        others = {*self._options.extended_default_select} - {CODES}
        longer = (code for code in self.selected if code.startswith(CODES) or _HOUSE_CODE.fullmatch(code))
        return [CODES, *(code for code in longer if code.rstrip("0123456789") not in others)]

    @cached_property
    def _guides(self) -> Any:
        from flake8.style_guide import StyleGuideManager  # type: ignore[import-untyped]

        return StyleGuideManager(self._options, formatter=None)


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
