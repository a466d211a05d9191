"""A change that cannot be made."""

from __future__ import annotations

import ast


class Refused(Exception):
    """A change is not written; the text is the reason, `line` its line in the file."""

    def __init__(self, reason: str, at: ast.AST | int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = at if isinstance(at, int) else int(getattr(at, "lineno", 1))
