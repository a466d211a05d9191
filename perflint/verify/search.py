"""Finds the fixes that neither slow a program down nor change what it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from perflint.findings import WRITABLE, Safety
from perflint.frozen import dataclass
from perflint.verify.execution import Run
from perflint.verify.judging import Timing, difference, failure, timing
from perflint.verify.plan import Candidate, Chosen

NONE: Chosen = frozenset()


class ProgramError(Exception):
    """The program fails without any fix, or makes no steps, so that there is nothing to compare with."""

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.message = message
        self.run = run


@dataclass(frozen=True, slots=True)
class Trial:
    """A comparison of the program with some fixes and with more of them."""

    chosen: Chosen
    before: tuple[Run, ...]
    after: tuple[Run, ...]
    timing: Timing | None
    """None where it was not timed to the end."""
    changes: str | None
    """How the fixes that it adds change the results more than they may."""

    @property
    def harm(self) -> str | None:
        """The reason against the fixes that it adds."""
        if self.changes is not None or self.timing is None:
            return self.changes
        return self.timing.harm


@dataclass(frozen=True, slots=True)
class Dropped:
    """A fix that is not kept, and why."""

    candidate: Candidate
    reason: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of the search."""

    kept: Chosen
    dropped: tuple[Dropped, ...]
    trial: Trial
    """The original against the fixes that are kept, or against all of them if none is kept."""
    originals: tuple[Run, ...]
    """All runs of the original."""
    reseeded: Run | None
    """One of the original with other random numbers; None where it was not needed."""


@dataclass(frozen=True, slots=True)
class Partial:
    """The results of a verification that ended early."""

    kept: Chosen
    """Fixes that passed all comparisons."""
    dropped: tuple[Dropped, ...]
    undecided: Chosen
    runs: int
    """The number of complete runs of the program."""


def expected_runs(candidates: Chosen, repeat: int, each: bool) -> int:
    """The number of runs that a search takes if no fix does harm."""
    pairs = 2 * repeat
    safeties = {one.safety for one in candidates}
    # Beside other fixes, the safe ones are run once alone. Fixes that are not safe need a run with other seeds.
    alone = 1 if Safety.SAFE in safeties and len(safeties) > 1 else 0
    reseeded = 1 if safeties - {Safety.SAFE} else 0
    return pairs + alone + reseeded + (pairs * len(candidates) if each and len(candidates) > 1 else 0)


class Search:
    """Tries fixes together, and in halves where that shows harm.

    `run` runs the program with some fixes, where the second argument says so with other random numbers.
    `changes` says what some fixes change in the files. A comparison of times is `repeat` (2 or more)
    pairs of runs, and as many again where they say slower. `tolerance` is the share by which unsafe
    and risky fixes may change losses. With `each`, every fix is timed by itself.
    """

    def __init__(
        self,
        run: Callable[[Chosen, bool], Run],
        changes: Callable[[Chosen], Mapping[str, object]],
        repeat: int,
        tolerance: float,
        each: bool = False,
    ) -> None:
        self._run_program = run
        self._changes = changes
        self._repeat = repeat
        self._tolerance = tolerance
        self._each = each
        self._runs: dict[Chosen, list[Run]] = {}
        self._reseeded: Run | None = None
        self._trials: dict[tuple[Chosen, Chosen], Trial] = {}
        self._judged: dict[Chosen, str | None] = {}
        self._dropped: list[Dropped] = []
        self._passed = NONE
        """The fixes that are known to do no harm."""

    def verify(self, candidates: Chosen) -> Verification:
        """Find the fixes to keep, of which there is at least one. Raises ProgramError."""
        whole = self._trial(NONE, candidates)
        kept = candidates
        if whole.changes is not None or not self._safe_ones_change_nothing(whole):
            kept = NONE
            for safety in WRITABLE:
                of_it = frozenset(one for one in candidates if one.safety is safety)
                kept = self._settle(kept, of_it, self._changes_results)
        kept = self._settle(NONE, kept, self._does_harm, self._each)
        if kept and self._does_harm(NONE, kept) is not None:
            # Each was fine with those before it.
            reason = f"with all that would be kept, {self._does_harm(NONE, kept)}"
            self._dropped += [Dropped(one, reason) for one in kept]
            kept = NONE
        trial = self._trials.get((NONE, kept), whole)
        return Verification(kept, self._sorted_dropped(), trial, tuple(self._runs[NONE]), self._reseeded)

    def so_far(self, candidates: Chosen) -> Partial:
        """The results of a search that was stopped."""
        dropped = frozenset(one.candidate for one in self._dropped)
        kept = self._passed - dropped
        runs = sum(map(len, self._runs.values())) + (self._reseeded is not None)
        return Partial(kept, self._sorted_dropped(), candidates - kept - dropped, runs)

    def _sorted_dropped(self) -> tuple[Dropped, ...]:
        return tuple(sorted(self._dropped, key=lambda one: _order(one.candidate)))

    def _settle(self, kept: Chosen, candidates: Chosen, test: _Test, singly: bool = False) -> Chosen:
        """The kept fixes with those candidates that pass a test, which returns the reason against the others."""
        if not candidates:
            return kept
        both = kept | candidates
        if self._changes(both) == self._changes(kept):
            self._dropped += [Dropped(one, "it cannot be applied without one that was dropped") for one in candidates]
            return kept
        if len(candidates) == 1 or not singly:
            against = test(kept, both)
            if against is None:
                return both
            if len(candidates) == 1:
                self._dropped += [Dropped(one, against) for one in candidates]
                return kept
        ordered = sorted(candidates, key=_order)
        middle = _middle(ordered)
        for half in (ordered[:middle], ordered[middle:]):
            kept = self._settle(kept, frozenset(half), test, singly)
        return kept

    def _does_harm(self, base: Chosen, chosen: Chosen) -> str | None:
        harm = self._trial(base, chosen).harm
        if harm is None:
            self._passed = chosen
        return harm

    def _changes_results(self, base: Chosen, chosen: Chosen) -> str | None:
        """How some fixes change the results of the original more than they may, by one run."""
        if chosen not in self._judged:
            while len(self._runs.get(NONE, ())) < 2:
                self._run(NONE, is_base=True)
            self._judged[chosen] = self._difference(NONE, self._run(chosen), chosen)
        return self._judged[chosen]

    def _safe_ones_change_nothing(self, whole: Trial) -> bool:
        """True if the safe ones of fixes that pass together keep their promise, which others may have hidden."""
        safe = frozenset(one for one in whole.chosen if one.safety is Safety.SAFE)
        known = self._runs[NONE]
        if not safe or all(difference(known, run, Safety.SAFE, 0.0) is None for run in whole.after):
            return True
        return self._changes_results(NONE, safe) is None

    def _trial(self, base: Chosen, chosen: Chosen) -> Trial:
        """Run the program both ways, in turns, and stop where the results are harmed."""
        if (base, chosen) in self._trials:
            return self._trials[base, chosen]
        before: list[Run] = []
        after: list[Run] = []
        changes = None
        while self._needs_more(before, after):
            # What drifts, such as a temperature, meets both alike.
            for each in (base, chosen) if len(after) % 2 == 0 else (chosen, base):
                (before if each == base else after).append(self._run(each, each == base))
            found = (self._difference(base, run, chosen - base) for run in after)
            changes = next((one for one in found if one is not None), None)
            # One run does not tell how far runs of the base differ from each other.
            if changes is not None and (len(self._runs[base]) > 1 or after[-1].failed):
                break
        timed = timing(before, after) if len(after) >= self._repeat else None
        if not base:
            self._judged[chosen] = changes
        trial = Trial(chosen, tuple(before), tuple(after), timed, changes)
        self._trials[base, chosen] = trial
        return trial

    def _needs_more(self, before: Sequence[Run], after: Sequence[Run]) -> bool:
        """True if a comparison needs another pair: few runs may be slower by chance, so as many again have to agree."""
        if len(after) == self._repeat:
            timed = timing(before, after)
            return timed is not None and timed.harm is not None
        return len(after) < 2 * self._repeat

    def _difference(self, base: Chosen, after: Run, added: Chosen) -> str | None:
        """How a run's results differ from those of the base by more than the fixes that it adds may change."""
        known = self._runs[base]
        safety = Safety.SAFE if all(one.safety is Safety.SAFE for one in added) else Safety.UNSAFE
        found = difference(known, after, safety, self._tolerance)
        if found is None or safety is Safety.SAFE or after.failed:
            return found
        # A layer without a bias draws fewer random numbers, so that others begin elsewhere. That may
        # do what another seed does.
        if self._reseeded is None:
            self._reseeded = self._run_program(NONE, True)
        if self._reseeded.failed:
            return found
        return difference([*known, self._reseeded], after, safety, self._tolerance)

    def _run(self, chosen: Chosen, is_base: bool = False) -> Run:
        run = self._run_program(chosen, False)
        if is_base:
            _require_steps(run)
        self._runs.setdefault(chosen, []).append(run)
        return run


_Test = Callable[[Chosen, Chosen], str | None]


def _require_steps(run: Run) -> None:
    if run.failed:
        raise ProgramError(f"without any fix, {failure(run)}", run)
    if run.ms is None:
        raise ProgramError("no steps of the program were timed", run)


def _order(candidate: Candidate) -> tuple[str, str, int]:
    return candidate.code, candidate.path, candidate.line


def _middle(candidates: Sequence[Candidate]) -> int:
    """The place to halve: between two rules, if there are several."""
    ends = [0]
    for _, group in groupby(candidates, key=lambda one: one.code):
        ends.append(ends[-1] + len(list(group)))
    inner = ends[1:-1] or range(1, len(candidates))
    return min(inner, key=lambda end: abs(end - len(candidates) / 2))
