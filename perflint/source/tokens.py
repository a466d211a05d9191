"""The tokens of a source, as far as `tokenize` reads it: the parser takes more."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator

from perflint.source.text import Source


def tokens(source: Source) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a source, up to what `tokenize` does not understand, such as a backslash at the end."""
    # tokenize wants the lines as Python splits them.
    lines = io.StringIO("".join(line.rstrip("\r\n") + "\n" for line in source.lines))
    try:
        yield from tokenize.generate_tokens(lines.readline)
    except (tokenize.TokenError, SyntaxError):
        return
