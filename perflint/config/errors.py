"""Faults in what the user asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class ConfigurationError(Exception):
    """A setting, option or selector that perflint cannot follow; the run ends with exit code 2."""

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.help = help
        self.all: tuple[ConfigurationError, ...] = (self,)
        """This fault, and others that were found with it."""


class Faults:
    """Collects faults, so that a user sees all of them at once."""

    def __init__(self) -> None:
        self._found: list[ConfigurationError] = []

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Keep the faults that the code inside raises."""
        try:
            yield
        except ConfigurationError as error:
            self._found += error.all

    def check(self) -> None:
        """Raise the first fault, with the others, if there is one."""
        if self._found:
            first = self._found[0]
            first.all = tuple(self._found)
            raise first


_LOOK_ALIKES = str.maketrans("oil", "011")


def known_code(word: str, codes: Iterable[str]) -> str | None:
    """A help text for a misspelt code of a rule: letters typed for digits, or the codes that begin alike.

    Other digits are not a misspelling: the rule that comes closest has nothing to do with the one that is meant.
    None if the word is not shaped like a code.
    """
    if not re.fullmatch(r"(?i)[a-z]+[0-9oil]*\d[0-9oil]*", word):
        return None
    known = sorted(codes)
    families = {code.rstrip("0123456789") for code in known}
    family = max((each for each in families if word.upper().startswith(each)), key=len, default=word[:3].upper())
    meant = family + word[len(family) :].casefold().translate(_LOOK_ALIKES)
    if meant in known:
        return f"did you mean `{meant}`?"
    first = meant[: len(family) + 1]
    same = [code for code in known if len(meant) > len(first) and code.startswith(first)]
    return f"codes that begin with {first}: {', '.join(same)}" if same else "`perflint rules` lists all codes"


def did_you_mean(word: str, candidates: Iterable[str], likeness: float = 0.65) -> str | None:
    """A help text that names the candidate closest to a misspelt word; None if none is as much like it."""
    import difflib

    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    close = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=likeness)
    return f"did you mean `{by_folded[close[0]]}`?" if close else None
