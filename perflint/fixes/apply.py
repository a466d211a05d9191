"""Write fixes into a text, so that what comes out is valid, clean of what was fixed and no worse.

A fix is applied whole or not at all. Each round takes the fixes that do not touch each
other, checks the new text, and puts aside those that break it, drop a comment or a name that
an expression binds, do not cure or bring a new finding, but for the smaller ones that they say
they leave. Rounds follow until one applies nothing.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import pairwise

from perflint.findings import Edit, Finding, Fix, Safety
from perflint.fixes.comments import rescued
from perflint.fixes.edits import in_newlines_of
from perflint.fixes.imports import import_edits
from perflint.fixes.layout import breaks
from perflint.fixes.leftovers import tidied, without_unused_imports
from perflint.fixes.rewrite import Offsets, Place, Rewrite, rewrite
from perflint.frozen import dataclass
from perflint.source.text import Source

Relint = Callable[[str], Sequence[Finding] | None]
"""Checks a text as its file is checked, and says what is shown of it; None where a rule crashes."""

Choice = Callable[[Finding, str], bool]
"""Whether to apply the fix of a finding; the text is the one that the finding is about, with earlier fixes in it."""

_EFFECTS = re.compile(r":=|\b(?:await|yield)\b")

Taken = Callable[[str], bool]
"""Whether other files may use a name of the top level."""

_MOST_ROUNDS = 50
"""Rounds end by themselves as long as what a fix leaves is no work for another."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A fix that was not applied, and why."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a text."""

    text: str
    applied: tuple[Finding, ...]
    """The findings whose fixes were applied; each has its position in the round that fixed it."""
    skipped: tuple[Skipped, ...]
    """Findings of the new text whose fixes are wanted but would do harm."""
    remaining: tuple[Finding, ...]
    """All findings of the new text."""


def apply_fixes(
    text: str,
    findings: Sequence[Finding],
    relint: Relint,
    safeties: Iterable[Safety] = (Safety.SAFE,),
    choice: Choice | None = None,
    is_taken: Taken = lambda name: False,
) -> Outcome:
    """Apply the fixes of `findings` whose safety is among `safeties`, and those that they make possible.

    `findings` are what `relint(text)` says. `text` must be valid Python, and every text that
    `relint` gets is. `choice` leaves fixes out. Imports that a fix leaves unused go with it, unless
    `is_taken` says that other files use the name.
    """
    wanted = frozenset(safeties) - {Safety.DISPLAY}
    applied: list[Finding] = []
    current = tuple(findings)
    skipped: tuple[Skipped, ...] = ()
    for _ in range(_MOST_ROUNDS):
        offered = current if choice is None else [finding for finding in current if choice(finding, text)]
        done = _round(_Round(Source("", text), current, relint, is_taken), offered, wanted)
        skipped = tuple(done.skipped)
        if not done.accepted:
            break
        text, current = done.text, done.findings
        applied.extend(finding for group in done.accepted for finding in group.findings)
    return Outcome(text, tuple(applied), skipped, current)


@dataclass(frozen=True, slots=True)
class _Group:
    """A fix and the findings that share it."""

    fix: Fix
    findings: list[Finding]


@dataclass(slots=True)
class _Round:
    """The state of a round: which fixes hold so far, and the text that they give."""

    source: Source
    before: Sequence[Finding]
    relint: Relint
    is_taken: Taken
    text: str = ""
    findings: tuple[Finding, ...] = ()
    accepted: list[_Group] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def settle(self, candidates: list[_Group]) -> None:
        """Accept what holds of some fixes, by halving those that do not hold together."""
        groups = [*self.accepted, *candidates]
        tried = self.attempt(groups)
        if not isinstance(tried, str):
            self.accepted = groups
            self.text, self.findings = tried
        elif len(candidates) == 1:
            self.skipped.extend(Skipped(finding, tried) for finding in candidates[0].findings)
        else:
            middle = len(candidates) // 2
            self.settle(candidates[:middle])
            self.settle(candidates[middle:])

    def attempt(self, groups: list[_Group]) -> tuple[str, tuple[Finding, ...]] | str:
        """The text with some fixes and its findings, or why it must not be."""
        edits = [_in_newlines(self.source, edit) for group in groups for edit in group.fix.edits]
        changed = rewrite(self.source, edits)
        if not _is_valid(changed.text, like=self.source.text):
            return "it would leave invalid Python"
        kept = rescued(self.source, changed)
        if kept is None:
            return "it would drop a comment"
        if kept:
            changed = rewrite(self.source, [*kept, *edits])
        changed = tidied(self.source, changed)
        statements = [statement for group in groups for statement in group.fix.imports]
        if statements:
            edited = Source(self.source.path, changed.text)
            changed = changed.then(rewrite(edited, import_edits(edited, statements)))
        edited = Source(self.source.path, changed.text)
        changed = changed.then(without_unused_imports(self.source, edited, self.is_taken))
        edited = Source(self.source.path, changed.text)
        too_long = breaks(self.source, edited)
        if too_long:
            changed = changed.then(rewrite(edited, too_long))
        if changed.text == self.source.text:
            return "it changes nothing"
        after = self.relint(changed.text)
        if after is None:
            return "perflint cannot check what it would leave"
        return self.harm(groups, changed, after) or (changed.text, tuple(after))

    def harm(self, groups: list[_Group], changed: Rewrite, after: Sequence[Finding]) -> str | None:
        """Why the findings after a change speak against it."""
        offsets = Offsets(self.source)
        was = _located(self.before, offsets, changed.place_before)
        cured = _located((f for group in groups for f in group.findings), offsets, changed.place_before)
        now = _located(after, Offsets(Source(self.source.path, changed.text)), changed.place_after)
        allowances = [_Allowance(group, offsets, changed) for group in groups if group.fix.leaves]
        for (code, place), count in now.items():
            more = count - was[code, place] + cured[code, place]
            if more > 0 and not any(allowance.covers(code, place, more) for allowance in allowances):
                return f"it would bring {code}" if count > was[code, place] else "it does not remove the finding"
        return None


class _Allowance:
    """What a fix says it leaves, and where: in what it writes, or where a finding was that it cures."""

    def __init__(self, group: _Group, offsets: Offsets, changed: Rewrite) -> None:
        self._codes = Counter(group.fix.leaves)
        ranges = {offsets.range(edit.span) for edit in group.fix.edits}
        pieces = enumerate(changed.stages[0])
        self._places = {(0, index) for index, piece in pieces if (piece.start, piece.end) in ranges}
        for finding in group.findings:
            self._places.add(changed.place_before(offsets.of(finding.span.line, finding.span.column)))

    def covers(self, code: str, place: Place, count: int) -> bool:
        """Whether it allows so many findings at a place; what it allows is used up."""
        if place not in self._places or self._codes[code] < count:
            return False
        self._codes[code] -= count
        return True


def _round(state: _Round, offered: Sequence[Finding], wanted: frozenset[Safety]) -> _Round:
    offsets = Offsets(state.source)
    waiting = []
    for group in _groups(offered, wanted):
        if _overlaps_itself(group, offsets):
            state.skipped.extend(Skipped(finding, "its edits overlap") for finding in group.findings)
        elif _drops_effect(state.source, group.fix):
            reason = "it would drop a name that is bound there, or an `await` or `yield`"
            state.skipped.extend(Skipped(finding, reason) for finding in group.findings)
        else:
            waiting.append(group)
    while waiting:
        chosen, waiting = _apart(offsets, waiting, state.accepted)
        if not chosen:
            break
        state.settle(chosen)
    return state


def _groups(findings: Iterable[Finding], wanted: frozenset[Safety]) -> list[_Group]:
    """The wanted fixes in the order of the file, each once."""
    groups: dict[tuple[tuple[Edit, ...], tuple[str, ...]], _Group] = {}
    for finding in sorted(findings, key=lambda finding: (finding.span, finding.code)):
        fix = finding.fix
        if fix is not None and fix.safety in wanted and fix.edits:
            groups.setdefault((fix.edits, fix.imports), _Group(fix, [])).findings.append(finding)
    return list(groups.values())


def _overlaps_itself(group: _Group, offsets: Offsets) -> bool:
    ranges = sorted(offsets.range(edit.span) for edit in group.fix.edits)
    return any(start < end_before for (_, end_before), (start, _) in pairwise(ranges))


def _drops_effect(source: Source, fix: Fix) -> bool:
    """Whether the edits of a fix leave out part of an expression that does more than give a value."""
    before = sum(len(_EFFECTS.findall(source.segment(edit.span))) for edit in fix.edits)
    return before > sum(len(_EFFECTS.findall(edit.text)) for edit in fix.edits)


def _apart(offsets: Offsets, waiting: list[_Group], accepted: list[_Group]) -> tuple[list[_Group], list[_Group]]:
    """The fixes that touch neither each other nor those accepted, and the others."""
    taken = [offsets.range(edit.span) for group in accepted for edit in group.fix.edits]
    chosen: list[_Group] = []
    others: list[_Group] = []
    for group in waiting:
        ranges = [offsets.range(edit.span) for edit in group.fix.edits]
        if any(_touch(one, other) for one in ranges for other in taken):
            others.append(group)
        else:
            taken.extend(ranges)
            chosen.append(group)
    return chosen, others


def _touch(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two ranges share a character, or an insertion borders on the other."""
    if one[0] == one[1] or other[0] == other[1]:
        return one[0] <= other[1] and other[0] <= one[1]
    return one[0] < other[1] and other[0] < one[1]


def _in_newlines(source: Source, edit: Edit) -> Edit:
    return Edit(edit.span, in_newlines_of(source, edit.span.line, edit.text))


def _located(
    findings: Iterable[Finding], offsets: Offsets, place: Callable[[int], Place]
) -> Counter[tuple[str, Place]]:
    return Counter((finding.code, place(offsets.of(finding.span.line, finding.span.column))) for finding in findings)


def _is_valid(text: str, like: str) -> bool:
    """Whether a text compiles; if `like` does not (a `return` outside a function), whether it parses."""
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
