"""Faults in what the user asked for."""

from __future__ import annotations

from collections.abc import Iterable


class ConfigurationError(Exception):
    """A setting, option or selector that perflint cannot follow; the run ends with exit code 2."""

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.help = help


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """A help text that names the candidate closest to a misspelt word; None where none is close."""
    import difflib

    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    close = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.65)
    return f"did you mean `{by_folded[close[0]]}`?" if close else None
