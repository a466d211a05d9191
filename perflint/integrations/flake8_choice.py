"""The choices of flake8's options, and a file as flake8 has read it. Nothing here takes time to import."""

from __future__ import annotations

import ast
import re
from argparse import Namespace
from functools import cached_property
from typing import Any, NamedTuple

CODES = "TPF"
"""The beginning of perflint's codes, and the name under which flake8 knows the plugin."""

_HOUSE_CODE = re.compile(r"(?!TPF)[A-Z]{2,4}[0-9]{0,3}")
"""A code of house rules, or the beginning of some: the rules are known once a file of their project is checked."""
_STANDARD_INPUT = "-"


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
