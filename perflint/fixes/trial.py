"""One attempt at some fixes: the text that they give together, or what speaks against it and which of them."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from perflint.findings import Edit, Finding, Fix
from perflint.fixes.comments import rescued
from perflint.fixes.edits import in_newlines_of
from perflint.fixes.imports import import_edits
from perflint.fixes.layout import breaks
from perflint.fixes.leftovers import tidied, without_unused_imports
from perflint.fixes.rewrite import Offsets, Place, Rewrite, rewrite
from perflint.frozen import dataclass
from perflint.source.suppressions import UNUSED
from perflint.source.text import Source

Relint = Callable[[str], Sequence[Finding] | None]
"""Checks a text as its file is checked, and says what is shown of it; None where a rule crashes."""
Taken = Callable[[str], bool]
"""True if other files may use a name of the top level."""

_MOST_LEVELS = 5
"""How many brackets within each other are broken."""


@dataclass(frozen=True, slots=True)
class Group:
    """A fix and the findings that share it."""

    fix: Fix
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """Some fixes do no harm: the text that they give, and its findings."""

    text: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Harm:
    """Some fixes do harm together."""

    reason: str
    blamed: dict[int, str]
    """The fixes, by their numbers, whose own place shows the harm, each with its reason. Without any, all of the
    others may be to blame."""
    proven: bool = False
    """True if each of the blamed does this harm whatever the others do."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A text, its findings before, and whom to ask about changes of it."""

    source: Source
    before: Sequence[Finding]
    relint: Relint
    is_taken: Taken
    line_length: int | None = None
    """The length at which the project's formatter breaks lines; None if it is unknown."""

    def attempt(self, groups: Sequence[Group]) -> Held | Harm:
        """Try some fixes, none of which touches another."""
        source = self.source
        edits = [_in_newlines(source, edit) for group in groups for edit in group.fix.edits]
        changed = rewrite(source, edits)
        if not _is_valid(changed.text, like=source.text):
            return Harm("it would leave invalid Python", {})
        owners = _owners(Offsets(source), groups)
        kept, lost = rescued(source, changed)
        if lost:
            reason = "it would drop a comment"
            return Harm(reason, {owners[piece.start, piece.end]: reason for piece in lost}, proven=True)
        if kept:
            changed = rewrite(source, [*kept, *edits])
        changed = self.finished(tidied(source, changed), groups)
        if changed.text == source.text:
            return Harm("it changes nothing", {})
        after = self.relint(changed.text)
        if after is None:
            return Harm("perflint cannot check what it would leave", {})
        harms = list(_Comparison(source, self.before, groups, changed, owners).harms(after))
        if not harms:
            return Held(changed.text, tuple(after))
        return Harm(harms[0][0], {owner: reason for reason, found in reversed(harms) for owner in found})

    def finished(self, changed: Rewrite, groups: Sequence[Group]) -> Rewrite:
        """The changed text with the imports that some fixes need, without those that they leave unused, and with
        lines broken that they make too long."""
        statements = [statement for group in groups for statement in group.fix.imports]
        if statements:
            edited = Source(self.source.path, changed.text)
            changed = changed.then(rewrite(edited, import_edits(edited, statements)))
        edited = Source(self.source.path, changed.text)
        changed = changed.then(without_unused_imports(self.source, edited, self.is_taken))
        for _ in range(_MOST_LEVELS):
            edited = Source(self.source.path, changed.text)
            too_long = breaks(self.source, edited, self.line_length)
            if not too_long:
                break
            changed = changed.then(rewrite(edited, too_long))
        return changed


def _owners(offsets: Offsets, groups: Sequence[Group]) -> dict[tuple[int, int], int]:
    """The fix, by its number, that each edit belongs to, by the range of the edit."""
    return {offsets.range(edit.span): at for at, group in enumerate(groups) for edit in group.fix.edits}


class _Comparison:
    """The findings before and after a change."""

    def __init__(
        self,
        source: Source,
        before: Sequence[Finding],
        groups: Sequence[Group],
        changed: Rewrite,
        owners: dict[tuple[int, int], int],
    ) -> None:
        self._changed = changed
        self._groups = groups
        self._offsets = Offsets(source)
        self._after = Offsets(Source(source.path, changed.text))
        self._was = Counter((finding.code, self._place_before(finding)) for finding in before)
        self._cured: Counter[tuple[str, Place]] = Counter()
        self._at: dict[Place, list[int]] = {}
        """The fixes that write at a place, or that cure a finding there."""
        for at, group in enumerate(groups):
            for finding in group.findings:
                place = self._place_before(finding)
                self._cured[finding.code, place] += 1
                self._at.setdefault(place, []).append(at)
        for index, piece in enumerate(changed.stages[0].pieces):
            if (piece.start, piece.end) in owners:
                self._at.setdefault((0, index), []).append(owners[piece.start, piece.end])
        self._left = [Counter(group.fix.leaves) for group in groups]
        """The findings that each fix may still leave: what it says, where it writes or cures."""
        self._brings = tuple(code for group in groups for code in group.fix.brings)

    def harms(self, after: Iterable[Finding]) -> Iterator[tuple[str, list[int]]]:
        """Why the findings after the change speak against it, and which fixes are at the places of these findings."""
        now = Counter((finding.code, self._place_after(finding)) for finding in after)
        for (code, place), count in now.items():
            was = self._was[code, place]
            more = count - was + self._cured[code, place]
            if code == UNUSED and count > was:
                # What the comment silenced is gone. A later round removes the comment.
                continue
            if count > was and code.startswith(self._brings):
                continue
            if more > 0 and not self._is_left(code, place, more):
                reason = f"it would bring {code}" if count > was else "it does not remove the finding"
                yield reason, self._at.get(place, [])

    def _is_left(self, code: str, place: Place, count: int) -> bool:
        """True if a fix says that it leaves so many findings at a place; what it allows is used up."""
        for at in self._at.get(place, ()):
            if self._left[at][code] >= count:
                self._left[at][code] -= count
                return True
        return False

    def _place_before(self, finding: Finding) -> Place:
        return self._changed.place_before(self._offsets.of(finding.span.line, finding.span.column))

    def _place_after(self, finding: Finding) -> Place:
        return self._changed.place_after(self._after.of(finding.span.line, finding.span.column))


def _in_newlines(source: Source, edit: Edit) -> Edit:
    return Edit(edit.span, in_newlines_of(source, edit.span.line, edit.text))


def _is_valid(text: str, like: str) -> bool:
    """True if a text compiles; if `like` does not (a `return` outside a function), whether it parses."""
    return _compiles(text, not _compiles(like, False))


@lru_cache(maxsize=8)
def _compiles(text: str, only_parse: bool) -> bool:
    flags = ast.PyCF_ONLY_AST if only_parse else 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            compile(text, "<fixed>", "exec", flags, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True
