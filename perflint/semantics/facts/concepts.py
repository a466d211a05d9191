"""The tables of `conventions.toml`: concepts, their entries with reasons, and the judged findings that rest on them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from perflint.frozen import dataclass, field
from perflint.semantics.facts.tables import table

_MOST_KNOWN = 5_000
"""Names whose entries a concept remembers."""

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")

Table = dict[str, "str | dict[str, int | str]"]
"""A concept as the file has it: entries by their reason, and the counts under `judged`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a concept, as the table writes it, with its reason as a clause that follows "it"."""

    concept: str
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Judged:
    """How many findings that rest on a concept were judged, and how many of them were true."""

    true: int
    of: int
    date: str
    """The month of the count: "2026-11"."""


@dataclass(frozen=True, slots=True)
class Concept:
    """The names that mean one thing, with the entry of each."""

    names: dict[str, Entry]
    prefixes: dict[str, Entry]
    suffixes: dict[str, Entry]
    parts: dict[str, Entry]
    patterns: dict[str, Entry]
    judged: Judged | None = None
    """None if no judged finding rests on the concept."""
    known: dict[str, Entry | None] = field(default_factory=dict, compare=False, repr=False)
    """The answers of `of`: the same names occur all over a project."""

    def of(self, name: str) -> Entry | None:
        """The entry by which a name belongs to the concept, or None."""
        if name in self.known:
            return self.known[name]
        if len(self.known) >= _MOST_KNOWN:
            self.known.clear()
        found = self.known[name] = self._of(name)
        return found

    def _of(self, name: str) -> Entry | None:
        entry = self.names.get(name)
        if entry is not None:
            return entry
        for prefix, entry in self.prefixes.items():
            if name.startswith(prefix):
                return entry
        for suffix, entry in self.suffixes.items():
            if name.endswith(suffix):
                return entry
        for part, entry in self.parts.items():
            if part in name:
                return entry
        # `re` compiles a pattern when it is first needed, and keeps it.
        return next((entry for pattern, entry in self.patterns.items() if re.fullmatch(pattern, name)), None)

    def of_any(self, names: Iterable[str]) -> Entry | None:
        """The entry by which the first of some names belongs to the concept, or None."""
        return next(filter(None, map(self.of, names)), None)


def concept_of(name: str, table: Table) -> Concept:
    """The concept of a table. Raises ValueError for an entry that is in it twice or has no meaning, or wrong counts."""
    counts = table.get(_JUDGED)
    made = Concept({}, {}, {}, {}, {}, None if counts is None else _judged(counts))
    for reason, text in table.items():
        if reason == _JUDGED:
            continue
        if not isinstance(text, str):
            raise ValueError(reason)
        for found in _PATTERN.findall(text):
            pattern = "".join(found.split())
            made.patterns[pattern] = Entry(name, f"/{pattern}/", reason)
        for entry in _PATTERN.sub(" ", text).split():
            word = entry.strip("*")
            kind = {word: made.names, f"{word}*": made.prefixes, f"*{word}": made.suffixes, f"*{word}*": made.parts}
            if not word.isidentifier() or entry not in kind or word in kind[entry]:
                raise ValueError(entry)
            kind[entry][word] = Entry(name, entry, reason)
    return made


def _judged(counts: str | dict[str, int | str]) -> Judged:
    """The counts of a table. Raises ValueError if they cannot be right."""
    if not isinstance(counts, dict) or set(counts) != {"true", "of", "date"}:
        raise ValueError(_JUDGED)
    true, of, date = counts["true"], counts["of"], counts["date"]
    if not isinstance(true, int) or not isinstance(of, int) or not 0 <= true <= of or of == 0:
        raise ValueError(f"{true} of {of}")
    if not isinstance(date, str) or not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", date):
        raise ValueError(f"{date}")
    return Judged(true, of, date)


_JUDGED = "judged"
_PATTERN = re.compile(r"/([^/]+)/")


@cache
def tables() -> dict[str, Table]:
    """The concepts as the file has them."""
    return table(Path(__file__).with_name("conventions.toml"))


@cache
def concept(name: str) -> Concept:
    """A concept by the name of its table."""
    return concept_of(name, tables()[name])


def words(name: str) -> tuple[str, ...]:
    """The words of an identifier or dotted name in lower case: "evalOneEpoch" has three."""
    return tuple(word.lower() for word in _WORD.findall(name))
