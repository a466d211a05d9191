"""What a terminal may be sent: colours, and text that cannot drive it."""

from __future__ import annotations

import os
from typing import TextIO

_CODES = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "dim": "2"}


class Style:
    """Colours, or none."""

    def __init__(self, colours: bool) -> None:
        self.colours = colours

    def __call__(self, text: str, *names: str) -> str:
        """A text in a style such as "bold", "red"."""
        if not self.colours or not text:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"


def wants_colours(choice: str, stream: TextIO) -> bool:
    """Whether to colour: `choice` is "always", "never" or "auto", which asks the environment and the stream."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def printable(text: str) -> str:
    """The text with control characters, which could drive a terminal, as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == " " else c.encode("unicode_escape").decode("ascii") for c in text)


def width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
