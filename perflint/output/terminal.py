"""Output for terminals: colours, and text that cannot control the terminal."""

from __future__ import annotations

import os
import re
from typing import TextIO

_CODES = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "dim": "2"}
_COMMAND = re.compile(r"##(?=(?:vso)?\[)")
"""The beginning of commands to GitHub Actions and Azure Pipelines."""
_NARROWEST = 40
_MOST_DIGITS = 9
_UNITS = ("%", "×", "ms")
_TERMINALS_WITH_LINKS = ("iTerm.app", "vscode", "WezTerm", "ghostty", "Hyper", "Tabby", "rio", "WarpTerminal")
"""Values of TERM_PROGRAM."""
_TERMS_WITH_LINKS = ("xterm-kitty", "alacritty", "foot", "xterm-ghostty")
"""Beginnings of TERM."""
_SIGNS_OF_LINKS = ("WT_SESSION", "KONSOLE_VERSION", "KITTY_WINDOW_ID", "DOMTERM")
"""Variables that only terminals with links set."""
_FIRST_VTE_WITH_LINKS = 5000


class Style:
    """Colours and links, or none."""

    def __init__(self, colours: bool, links: bool = False) -> None:
        self.colours = colours
        self._links = links

    def __call__(self, text: str, *names: str) -> str:
        """A text in a style such as "bold", "red"."""
        if not self.colours or not text:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"

    def link(self, text: str, address: str | None) -> str:
        """A text that opens an address where the terminal shows links."""
        if not self._links or not address or not address.isascii() or not address.isprintable():
            return text
        return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"


def wants_links(stream: TextIO) -> bool:
    """True if a stream is a terminal that is known to show links (OSC 8). FORCE_HYPERLINK decides if it is set."""
    said = os.environ.get("FORCE_HYPERLINK", "")
    if said:
        return said != "0"
    if not stream.isatty() or os.environ.get("CI"):
        return False
    if os.environ.get("TERM_PROGRAM") in _TERMINALS_WITH_LINKS or any(map(os.environ.get, _SIGNS_OF_LINKS)):
        return True
    version = os.environ.get("VTE_VERSION", "")
    if version.isdecimal() and int(version[:9]) >= _FIRST_VTE_WITH_LINKS:
        return True
    return os.environ.get("TERM", "").startswith(_TERMS_WITH_LINKS)


def wants_colours(choice: str, stream: TextIO) -> bool:
    """True if to colour: `choice` is "always", "never" or "auto", which asks the environment and the stream."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    forced = any(os.environ.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE"))
    return forced or stream.isatty()


def printable(text: str) -> str:
    """The text with control characters, which could drive a terminal, as escapes.

    Commands to a service that reads the log, which may stand anywhere in a line, are escaped, too.
    """
    text = _COMMAND.sub(r"\\x23#", text) if "##" in text else text
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == " " else c.encode("unicode_escape").decode("ascii") for c in text)


def printable_path(path: str) -> str:
    """A path, perhaps with more, that may begin a line: services take lines that begin with colons for commands."""
    text = printable(path)
    return f"./{text}" if text.lstrip().startswith("::") else text


def width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def columns(stream: TextIO) -> int | None:
    """How wide text may be that goes to a stream: the width of its terminal, None if it goes elsewhere."""
    if not stream.isatty():
        return None
    told = os.environ.get("COLUMNS", "")
    try:
        wide = (
            int(told)
            if told.isdecimal() and len(told) < _MOST_DIGITS
            else os.get_terminal_size(stream.fileno()).columns
        )
    except OSError:
        return None
    return max(wide, _NARROWEST) if wide else None


def wrapped(text: str, columns: int | None, first: int, rest: int) -> list[str]:
    """The lines of a text in a terminal of that width; one line without a width.

    The first line leaves room for `first` characters that are written before it, the others begin with `rest` spaces.
    """
    if columns is None or first + width(text) <= columns:
        return [text]
    import textwrap

    # A number stays with its unit.
    for unit in _UNITS:
        text = text.replace(f" {unit}", f"\u00a0{unit}")
    lines = textwrap.wrap(
        text,
        columns,
        initial_indent=" " * first,
        subsequent_indent=" " * rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    lines = [line.replace("\u00a0", " ") for line in lines]
    return [lines[0].lstrip(" "), *lines[1:]] if lines else [text]
