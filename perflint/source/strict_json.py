"""JSON that anyone may have written, read without surprises.

Python reads more than JSON: numbers that are none or infinite, and halves of surrogate pairs. A path or an output that
gets these fails far from the document, so they are refused here.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from typing import Any, TextIO

_ODD = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
"""The escapes without which no text has a null character or a half of a surrogate pair."""
_SPACE = re.compile(r"[ \t\r\n]*")
_NOT_JSON = "it is not JSON"
_AHEAD = 1 << 20
"""Characters of the longest value that is surely read from a stream."""


class NotJson(ValueError):
    """A text that is not JSON, or has a number or a character that no document has; the message has the reason."""


def parsed(data: bytes) -> Any:
    """The value of a document. Raises NotJson."""
    try:
        text = data.decode()
        value = _DECODER.decode(text)
    except UnicodeDecodeError:
        raise NotJson("it is not UTF-8") from None
    except (ValueError, RecursionError):
        raise NotJson(_NOT_JSON) from None
    if _ODD.search(text):
        _require_plain(value)
    return value


def dumped(value: Any) -> str:
    """A JSON text that `parsed` reads, in which characters that are not plain are escapes. Raises ValueError."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return json.dumps(_escaped(value), separators=(",", ":")) if _ODD.search(text) else text


def is_plain(text: str) -> bool:
    """True if a text has no null character and no half of a surrogate pair: it can be a path, and be written."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return "\0" not in text


class TooLarge(NotJson):
    """A text that is longer than was allowed."""


class Stream:
    """A long JSON text, read value by value. All methods raise NotJson, and the errors of the file."""

    def __init__(self, file: TextIO, largest: int) -> None:
        """Raises TooLarge where the text is longer than `largest` characters: kilobytes may unpack to gigabytes."""
        self._file = file
        self._left = largest
        self._text = ""
        self._at = 0
        self._is_over = False

    def members(self) -> Iterator[str]:
        """The names of an object. The value of each must be read, or skipped, before the next."""
        for name in self._listed("{", "}"):
            if not isinstance(name, str):
                raise NotJson(_NOT_JSON)
            self._expect(":")
            yield name

    def items(self) -> Iterator[Any]:
        """The values of a list."""
        return self._listed("[", "]")

    def skip(self) -> None:
        """Pass over a value."""
        if self.begins("["):
            for _ in self.items():
                pass
        elif self.begins("{"):
            for _ in self.members():
                self.value()
        else:
            self.value()

    def value(self) -> Any:
        """The next value. Raises NotJson for one of many megabytes, too."""
        self._pass_space()
        if len(self._text) - self._at < _AHEAD:
            self._fill()
        try:
            value, end = _DECODER.raw_decode(self._text, self._at)
        except (ValueError, RecursionError):
            raise NotJson(_NOT_JSON) from None
        if _ODD.search(self._text, self._at, end):
            _require_plain(value)
        self._at = end
        return value

    def begins(self, sign: str) -> bool:
        """True if a sign comes next."""
        self._pass_space()
        return self._text.startswith(sign, self._at)

    def end(self) -> None:
        """Raise NotJson if there is more."""
        self._pass_space()
        if self._at < len(self._text):
            raise NotJson(_NOT_JSON)

    def _listed(self, opening: str, closing: str) -> Iterator[Any]:
        self._expect(opening)
        is_first = True
        while not self.begins(closing):
            if not is_first:
                self._expect(",")
            is_first = False
            yield self.value()
        self._expect(closing)

    def _expect(self, sign: str) -> None:
        if not self.begins(sign):
            raise NotJson(_NOT_JSON)
        self._at += 1

    def _pass_space(self) -> None:
        while self._text[self._at : self._at + 1].isspace() or self._at == len(self._text):
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text) or self._is_over:
                return
            self._fill()

    def _fill(self) -> None:
        """Read on, and forget the values that were read."""
        if not self._is_over:
            more = self._file.read(4 * _AHEAD)
            self._is_over = not more
            self._left -= len(more)
            if self._left < 0:
                raise TooLarge("it is too large")
            self._text = self._text[self._at :] + more
            self._at = 0


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def _require_plain(value: Any) -> None:
    """Raise NotJson for texts in a value that are not plain."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            pending += (*each, *each.values())
        elif isinstance(each, list):
            pending += each
        elif isinstance(each, str) and not is_plain(each):
            raise NotJson("a text in it has a null character, or half a surrogate pair")


def _escaped(value: Any) -> Any:
    if isinstance(value, dict):
        return {_escaped(name): _escaped(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_escaped(each) for each in value]
    if isinstance(value, str) and not is_plain(value):
        return value.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    return value
