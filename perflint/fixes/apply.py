"""Write fixes into a text, so that what comes out is valid, clean of what was fixed and no worse.

A fix is applied whole or not at all. Each round takes the fixes that do not touch each
other, checks the new text, and puts aside those that break it, drop a comment or a name that
an expression binds, do not cure or bring a new finding, but for the smaller ones that they say
they leave. Rounds follow until one applies nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, pairwise

from perflint.findings import Edit, Finding, Fix, Safety
from perflint.fixes.comments import quotes_replaced
from perflint.fixes.rewrite import Offsets
from perflint.fixes.trial import Group, Held, Relint, Taken, Trial
from perflint.frozen import dataclass, field
from perflint.source.text import Source

Choice = Callable[[Finding, str], bool]
"""True if the fix of a finding is to be applied; the text is that of the finding, with earlier fixes in it."""

_EFFECTS = re.compile(r":=|\b(?:await|yield)\b")

_MOST_ROUNDS = 50
"""Rounds end by themselves unless fixes make work for each other without end."""
_MOST_ATTEMPTS = 64
"""In a round: enough to try each of 32 fixes alone, and to find some harmful ones among hundreds."""
_PROOFS = 3
"""How many fixes of a rule must do a harm alone for all that are blamed for it to be put aside."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A fix that was not applied, and why."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of fixing a text."""

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
    line_length: int | None = None,
) -> Outcome:
    """Apply the fixes of `findings` whose safety is among `safeties`, and those that they make possible.

    `findings` are what `relint(text)` says. `text` must be valid Python, and every text that
    `relint` gets is. `choice` selects fixes. Imports that a fix leaves unused go with it, unless
    `is_taken` says that other files use the name. Lines that become longer than `line_length` are
    broken; without one, the lines of the file show it.
    """
    wanted = frozenset(safeties) - {Safety.DISPLAY}
    applied: list[Finding] = []
    current = tuple(findings)
    skipped: tuple[Skipped, ...] = ()
    for _ in range(_MOST_ROUNDS):
        offered = current if choice is None else [finding for finding in current if choice(finding, text)]
        done = _round(_Round(Trial(Source("", text), current, relint, is_taken, line_length)), offered, wanted)
        skipped = tuple(done.skipped)
        if not done.accepted:
            break
        text, current = done.text, done.findings
        applied.extend(finding for group in done.accepted for finding in group.findings)
    return Outcome(text, tuple(applied), skipped, current)


@dataclass(slots=True)
class _Round:
    """The state of a round: which fixes hold so far, and the text that they give."""

    trial: Trial
    text: str = ""
    findings: tuple[Finding, ...] = ()
    accepted: list[Group] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    attempts: int = 0
    proven: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many fixes of a rule were tried alone and put aside for a reason."""

    def settle(self, candidates: Sequence[Group]) -> None:
        """Accept some fixes as far as they do no harm together.

        Fixes whose place shows harm are put aside at once, others are found by halving. Each attempt takes as
        long as checking the whole text, so that their number has a limit.
        """
        while candidates:
            if self.attempts == _MOST_ATTEMPTS:
                self.put_aside(candidates, "too many other fixes of this file do harm")
                return
            self.attempts += 1
            groups = [*self.accepted, *candidates]
            tried = self.trial.attempt(groups)
            if isinstance(tried, Held):
                self.accepted = groups
                self.text, self.findings = tried.text, tried.findings
                return
            if len(candidates) == 1:
                self.put_aside(candidates, tried.reason)
                return
            blamed = {
                at: tried.blamed[known]
                for at in range(len(candidates))
                if (known := at + len(self.accepted)) in tried.blamed
            }
            if not blamed:
                middle = len(candidates) // 2
                self.settle(candidates[:middle])
                candidates = candidates[middle:]
            elif len(blamed) < len(candidates) or tried.proven:
                candidates = self.without(candidates, blamed)
            else:
                candidates = self.try_alone(candidates, blamed)

    def try_alone(self, candidates: Sequence[Group], blamed: Mapping[int, str]) -> Sequence[Group]:
        """Try one of some fixes that are all blamed, as a single one may be the culprit; gives those still to be tried.

        When some of a rule have done the same harm alone, the others of the rule are taken to do it, too.
        """
        habits = [(group.findings[0].code, blamed[at]) for at, group in enumerate(candidates)]
        enough = {at: blamed[at] for at, habit in enumerate(habits) if self.proven[habit] >= _PROOFS}
        if enough:
            return self.without(candidates, enough)
        known = len(self.skipped)
        self.settle(candidates[:1])
        self.proven[habits[0]] += len(self.skipped) > known
        return candidates[1:]

    def without(self, candidates: Sequence[Group], harmful: Mapping[int, str]) -> list[Group]:
        """Put aside those of some fixes that do harm, by their numbers, each for its reason; gives the others."""
        for at, reason in harmful.items():
            self.put_aside(candidates[at : at + 1], reason)
        return [group for at, group in enumerate(candidates) if at not in harmful]

    def put_aside(self, groups: Iterable[Group], reason: str) -> None:
        """Leave out some fixes in this round."""
        self.skipped.extend(Skipped(finding, reason) for group in groups for finding in group.findings)


def _round(state: _Round, offered: Sequence[Finding], wanted: frozenset[Safety]) -> _Round:
    offsets = Offsets(state.trial.source)
    waiting = []
    for group in _groups(offered, wanted):
        if _overlaps_itself(group, offsets):
            state.put_aside([group], "its edits overlap")
        elif _drops_effect(state.trial.source, group.fix):
            state.put_aside([group], "it would drop a name that is bound there, or an `await` or `yield`")
        elif _joins_words(state.trial.source, offsets, group.fix):
            state.put_aside([group], "it would join two words")
        elif any(quotes_replaced(state.trial.source, edit) for edit in group.fix.edits):
            state.put_aside([group], "a comment on the line quotes the code that it replaces")
        else:
            waiting.append(group)
    while waiting:
        chosen, waiting = _apart(offsets, waiting, state.accepted)
        if not chosen:
            break
        state.settle(chosen)
    return state


def _groups(findings: Iterable[Finding], wanted: frozenset[Safety]) -> list[Group]:
    """The wanted fixes in the order of the file, each once."""
    groups: dict[tuple[tuple[Edit, ...], tuple[str, ...]], list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: (finding.span, finding.code)):
        fix = finding.fix
        if fix is not None and fix.safety in wanted and fix.edits:
            groups.setdefault((fix.edits, fix.imports), []).append(finding)
    return [Group(found[0].fix, tuple(found)) for found in groups.values() if found[0].fix is not None]


def _overlaps_itself(group: Group, offsets: Offsets) -> bool:
    ranges = sorted(offsets.range(edit.span) for edit in group.fix.edits)
    return any(start < end_before for (_, end_before), (start, _) in pairwise(ranges))


def _drops_effect(source: Source, fix: Fix) -> bool:
    """True if the edits of a fix leave out part of an expression that does more than give a value."""
    before = sum(len(_EFFECTS.findall(source.segment(edit.span))) for edit in fix.edits)
    return before > sum(len(_EFFECTS.findall(edit.text)) for edit in fix.edits)


def _joins_words(source: Source, offsets: Offsets, fix: Fix) -> bool:
    """True if an edit joins two words: `return(a)` must not become `returna`."""
    text = source.text
    for edit in fix.edits:
        start, end = offsets.range(edit.span)
        before, after = text[max(start - 1, 0) : start], text[end : end + 1]
        old, new = text[start:end] or after, edit.text or after
        if _is_word(before, new[:1]) and not _is_word(before, old[:1]):
            return True
        if edit.text and _is_word(new[-1], after) and not _is_word(text[max(end - 1, 0) : end], after):
            return True
    return False


def _is_word(left: str, right: str) -> bool:
    """True if two adjacent characters belong to one word or number."""
    return f"_{left}".isidentifier() and f"_{right}".isidentifier() and bool(left and right)


def _apart(offsets: Offsets, waiting: list[Group], accepted: list[Group]) -> tuple[list[Group], list[Group]]:
    """The fixes that touch neither each other nor those accepted, and the others."""
    taken = _Ranges()
    for group in accepted:
        taken.add(offsets.range(edit.span) for edit in group.fix.edits)
    chosen: list[Group] = []
    others: list[Group] = []
    for group in waiting:
        ranges = [offsets.range(edit.span) for edit in group.fix.edits]
        if any(map(taken.touch, ranges)):
            others.append(group)
        else:
            taken.add(ranges)
            chosen.append(group)
    return chosen, others


class _Ranges:
    """Ranges that do not overlap, in order."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    def add(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Add some ranges that overlap neither each other nor those here."""
        for each in ranges:
            insort(self._ranges, each)

    def touch(self, one: tuple[int, int]) -> bool:
        """True if one of the ranges shares a character with another range, or an insertion borders on the other."""
        at = bisect_left(self._ranges, one[0], key=lambda other: other[1])
        for other in islice(self._ranges, at, None):
            if other[0] > one[1]:
                return False
            if one[0] == one[1] or other[0] == other[1] or (one[0] < other[1] and other[0] < one[1]):
                return True
        return False
