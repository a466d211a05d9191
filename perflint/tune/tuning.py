"""Tries changes in the program's own loop, those that are quick to try first, and keeps those that pay with proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from math import isfinite
from statistics import fmean, median
from typing import Any

from perflint.frozen import dataclass, field, replace
from perflint.tune.changes import Change, Texts
from perflint.tune.evidence import Evidence, evidence_of
from perflint.tune.graphs.failing import failing
from perflint.tune.proof import Kind, Proof, compared, first_difference, only_losses_vary
from perflint.tune.refused import Refused
from perflint.verify.execution import Run
from perflint.verify.judging import failure, losses
from perflint.verify.stopping import TIME_SPENT, Stopped

_START_MS = 2000.0
"""Milliseconds by which a start must be longer to count."""
_MANY = 6
"""Runs of which one may be slow by chance."""
_LITTLE = 0.1
"""The share of a step below which the gain of a change is hard to tell from noise."""
_GROWN = 1.25
"""How many times as much a change must promise as when it gained nothing to be tried again."""
LEAST = 1.02
"""The gain from which on a change pays."""


class Way(Enum):
    """The way in which the program is run."""

    PLAIN = "plain"
    RESEEDED = "with other seeds"
    DETERMINISTIC = "with deterministic kernels"


@dataclass(frozen=True, slots=True)
class Trial:
    """A change that was tried on top of those kept before."""

    change: Change
    before: tuple[Run, ...]
    after: tuple[Run, ...]
    proof: Proof | None
    kept: bool
    reason: str
    """Why it is not kept; empty if it is."""
    is_wrong: bool = False
    """True if it fails, or is not proved to compute the same."""

    @property
    def gain(self) -> float | None:
        """How many times as fast a step is, by the means of the steps; None if it was not timed."""
        before, after = step_ms(self.before), step_ms(self.after)
        return before / after if before and after else None

    @property
    def pays_from(self) -> int | None:
        """The step from which on the whole run is shorter, as starting takes longer; None if it is at once."""
        saved = (step_ms(self.before) or 0.0) - (step_ms(self.after) or 0.0)
        before, after = (
            min(run.seconds * 1000 - sum(run.seen.times) for run in runs if run.seen is not None)
            for runs in (self.before, self.after)
        )
        return round((after - before) / saved) if saved > 0 and after - before > _START_MS else None


@dataclass(slots=True)
class Outcome:
    """The state of a search, also of one that was stopped."""

    original: list[Run] = field(default_factory=list)
    evidence: Evidence | None = None
    """The facts of the original."""
    texts: dict[str, str] = field(default_factory=dict)
    """The files as they are best, those that changed."""
    best: list[Run] = field(default_factory=list)
    """The runs of the best program."""
    trials: list[Trial] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Changes that could not be written, with the reason."""

    @property
    def kept(self) -> list[Trial]:
        """The trials whose changes are in the patch."""
        return [each for each in self.trials if each.kept]


def step_ms(runs: Sequence[Run]) -> float | None:
    """The mean time of a step: the median over some runs."""
    means = [fmean(run.seen.times) for run in runs if run.seen is not None and run.seen.times]
    return median(means) if means else None


class Tuning:
    """One search. `run` runs the program with some files changed; `read` reads a file of the project as it is.

    That may raise Refused. `holds` tells if a file can be changed for a run. A comparison is `repeat` pairs of runs in
    turns. With `inexact`, changes that are so may change the numbers. `tell` is called whenever a change is kept.
    """

    def __init__(
        self,
        run: Callable[[Mapping[str, str], Way], Run],
        read: Callable[[str], str],
        repeat: int,
        tolerance: float,
        inexact: bool,
        tell: Callable[[Outcome], None] = lambda _: None,
        holds: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._run_program = run
        self._reseeded: Run | None = None
        self._read = read
        self._repeat = repeat
        self._tolerance = tolerance
        self._inexact = inexact
        self._tell = tell
        self._holds = holds
        self.oldest: tuple[int, int] | None = None
        """The oldest torch that the project allows, if it is known."""
        self.outcome = Outcome()

    def start(self) -> Evidence:
        """Run the original and return its facts. Raises Refused if it fails."""
        run = self._run({})
        if run.failed or run.seen is None or not run.seen.times:
            raise Refused(failure(run) if run.failed else "no steps of the program were timed", 1)
        self.outcome.original.append(run)
        self.outcome.best = [run]
        self.outcome.evidence = evidence_of(run)
        return self.outcome.evidence

    def search(self, changes: Sequence[Change]) -> Outcome:
        """Try changes, and those that failed again on top of others that were kept."""
        try:
            self._try_all(list(changes))
            self._confirm()
        finally:
            self._drop_idle()
        return self.outcome

    def _try_all(self, waiting: list[Change]) -> None:
        progress = True
        idle: dict[Change, float] = {}
        while progress and waiting:
            progress = False
            for change in self._ordered(waiting):
                texts = self._written(change)
                if texts is None:
                    continue
                waiting.remove(change)
                share = change.forecast(evidence_of(self.outcome.best[-1], self.oldest))
                trial = self._tried(change, texts)
                self.outcome.trials.append(trial)
                if trial.kept:
                    self.outcome.texts = texts
                    self.outcome.best = list(trial.after)
                    waiting += [change] if change.again else []
                    self._tell(self.outcome)
                    now = evidence_of(self.outcome.best[-1], self.oldest)
                    for each in [each for each, was in idle.items() if each.forecast(now) > _GROWN * was]:
                        waiting.append(each)
                        del idle[each]
                else:
                    if not trial.is_wrong and not change.clears:
                        idle[change] = share
                    others = [*self._learned(trial, texts), *(change.parts() if trial.is_wrong else ())]
                    others += [] if trial.is_wrong else self._with_another(trial, texts)
                    waiting += others
                    if not others:
                        continue
                progress = True
                break

    def _with_another(self, trial: Trial, texts: dict[str, str]) -> list[Change]:
        """A change that gained nothing and the one beside it, if steps wait for batches all the longer with the first.

        Where the loader and the work of a step take alike, neither gains anything alone.
        """
        one, other, base = trial.change, trial.change.beside, self.outcome.texts
        waits = [evidence_of(runs[-1], self.oldest) for runs in (trial.before, trial.after)]
        if other is None or trial.after[-1].failed or waits[1].loading <= waits[0].loading:
            return []

        def write(known: Texts, _: Evidence) -> dict[str, str]:
            if self.outcome.texts is not base:
                raise Refused("something else was kept since it was tried alone", 1)
            return texts | other.write({**known, **texts}, waits[1])

        # It may be the second time that one is tried with more of the other.
        names = {one.name: one.title} if other.name in one.name else {one.name: one.title, other.name: other.title}
        name, title = " and ".join(names), ", and ".join(names.values())
        return [replace(one, name=name, title=title, write=write, forecast=lambda _: 1.0)]

    def _learned(self, trial: Trial, texts: Texts) -> Sequence[Change]:
        """Other forms of a change, by what a failing run of it printed."""
        if not trial.after[0].failed:
            return ()
        known = self._known(evidence_of(trial.before[-1], self.oldest))
        return trial.change.learn(trial.after[0].told, known, {**known, **texts})

    def _known(self, evidence: Evidence) -> dict[str, str]:
        """The files that ran, as they are best. Raises Refused."""
        return {path: self._read(path) for path in evidence.files} | self.outcome.texts

    def _run(self, texts: Mapping[str, str], way: Way = Way.PLAIN) -> Run:
        return self._run_program(texts, way)

    def _other_seeds(self) -> Run:
        """A run of the original with other random numbers, which shows how far losses may differ."""
        if self._reseeded is None:
            self._reseeded = self._run({}, Way.RESEEDED)
        return self._reseeded

    def _ordered(self, waiting: Sequence[Change]) -> list[Change]:
        evidence = evidence_of(self.outcome.best[-1], self.oldest)
        is_clearing = all(each.change.clears for each in self.outcome.kept)
        fitting = [each for each in waiting if is_clearing or not each.clears]

        def rank(change: Change) -> tuple[bool, bool, float]:
            share = change.forecast(evidence)
            # What is slow to try goes before what saves little, but not before the rest.
            return not change.clears, change.is_slow or share < _LITTLE, -share

        return sorted(fitting, key=rank)

    def _written(self, change: Change) -> dict[str, str] | None:
        evidence = evidence_of(self.outcome.best[-1], self.oldest)
        try:
            written = change.write(self._known(evidence), evidence)
            if (linked := next((path for path in written if not self._holds(path)), None)) is not None:
                raise Refused(f"{linked} is a link or shared, and the original must stay as it is", 1)
        except Refused as refused:
            if not any(each.change is change for each in self.outcome.kept):
                self.outcome.refused[change.name] = refused.reason
            return None
        share = change.forecast(evidence)
        if evidence.busy is not None and share < LEAST - 1:
            self.outcome.refused[change.name] = f"it could save {share:.1%} of a step at most"
            return None
        self.outcome.refused.pop(change.name, None)
        return self.outcome.texts | written

    def _tried(self, change: Change, texts: dict[str, str]) -> Trial:
        before, after = list(self.outcome.best), [self._run(texts)]
        if after[0].failed or not step_ms(after):
            known = self._known(evidence_of(before[-1], self.oldest))
            found = failing(after[0].told, known, {**known, **texts})
            reason = _why_untimed(after[0]) + (f", at `{found[1]}` ({found[0]})" if found is not None else "")
            return Trial(change, tuple(before), tuple(after), None, False, reason, after[0].failed)
        least = 1 / 1.1 if change.clears else 1.0
        is_slower = _ratio(before, after) < least
        # One run shows that a change does no harm. The pairs of later changes are faster with it, or it is left out.
        # A few steps that stall by chance make one mean longer, but not the median.
        # Others may need what clears the way, so that one slow run is not enough against it.
        is_open = change.clears or (before[-1].ms or 0.0) >= (after[0].ms or 0.0) * least
        if is_open if is_slower else not change.clears:
            self._repeated(before, after, self.outcome.texts, texts)
        ratio = _ratio(before, after)
        if ratio < least:
            return Trial(
                change, tuple(before), tuple(after), None, False, f"a step takes {1 / ratio:.2f} times as long"
            )
        reference = before if self.outcome.texts else [*self.outcome.original, *before[1:]]
        proof = compared(reference, after[0], self._tolerance, self._other_seeds)
        trial = Trial(change, tuple(before), tuple(after), proof, False, "")
        is_wrong = not self._is_allowed(trial)
        reason = self._against(trial)
        if not reason:
            reason, proved = self._against_graphs(change, texts)
            is_wrong, proof = bool(reason), replace(proof, text=proof.text + proved)
        return Trial(change, tuple(before), tuple(after), proof, not reason, reason, is_wrong)

    def _repeated(self, before: list[Run], after: list[Run], old: dict[str, str], new: dict[str, str]) -> None:
        """Add runs in turns up to the number of a comparison, and up to as many again while chance may explain it.

        Two pairs without a gain are enough.
        """
        while len(after) < self._repeat or _is_open(before, after, 2 * self._repeat):
            if len(after) > 1 and _ratio(before, after) < LEAST:
                return
            try:
                before.append(self._run(old))
                if not old:
                    self.outcome.original.append(before[-1])
                after.append(self._run(new))
            except Stopped as stop:
                # Runs that were only to exclude chance need not be complete when the time is spent.
                if stop.status != TIME_SPENT or len(after) < self._repeat:
                    raise
                return

    def _against(self, trial: Trial) -> str:
        """The reason against a change that was timed; empty if it is kept."""
        assert trial.proof is not None
        if not self._is_allowed(trial):
            return trial.proof.text
        if _is_faster(trial.before, trial.after) or trial.change.clears:
            return ""
        return f"no gain beyond the spread: {trial.gain or 0.0:.2f} ×"

    def _is_allowed(self, trial: Trial) -> bool:
        """True if a change computes the same, or may change the numbers and leaves them finite."""
        if trial.proof is None or trial.proof.kind is not Kind.OTHER:
            return True
        return self._inexact and trial.change.is_inexact and all(map(isfinite, losses(trial.after[0])))

    def _against_graphs(self, change: Change, texts: dict[str, str]) -> tuple[str, str]:
        """Why the graphs of a change do not compute what its eager steps do; empty if they do. And what is proved."""
        if change.eager is None:
            return "", ""
        eager = {path: change.eager(text) for path, text in texts.items()}
        if eager == texts:
            return "", ""
        runs = [self._run(each, Way.DETERMINISTIC) for each in (texts, eager)]
        failed = next((run for run in runs if run.failed), None)
        if failed is not None:
            return f"it fails with deterministic kernels, so that it cannot be proved: {failure(failed)}", ""
        found = first_difference(runs[1], runs[0])
        if found is None:
            return "", "; its graphs are bit for bit its eager steps"
        again = self._run(eager, Way.DETERMINISTIC)
        varies = first_difference(runs[1], again)
        if varies is None:
            return f"its graph does not compute what its eager steps do: {found}", ""
        if only_losses_vary(runs[0], runs[1], again):
            return (
                "",
                "; its graphs leave bit for bit the state that its eager steps do, whose losses vary from run to run",
            )
        return (
            f"with deterministic kernels, too, runs of its eager steps differ, so that it is not proved: {varies}",
            "",
        )

    def _confirm(self) -> None:
        """Complete the comparison of changes that were to clear the way, if they are all that was kept."""
        if (last := self._idle()) is not None:
            before = list(last.before) if len(self.outcome.kept) == 1 else list(self.outcome.original)
            after = list(last.after)
            self._repeated(before, after, {}, self.outcome.texts)
            self.outcome.best = after
            self._replace(last, before=tuple(before), after=tuple(after))

    def _drop_idle(self) -> None:
        """Leave out what only cleared the way if nothing was gained with it."""
        last = self._idle()
        if last is not None and not self._is_confirmed(last):
            self.outcome.texts, self.outcome.best = {}, list(self.outcome.original)
            for each in self.outcome.kept:
                self._replace(each, kept=False, reason=f"no gain beyond the spread: {last.gain or 0.0:.2f} ×")

    def _idle(self) -> Trial | None:
        """The last change that is kept, if all that are were to clear the way."""
        kept = self.outcome.kept
        return kept[-1] if kept and all(each.change.clears for each in kept) else None

    def _replace(self, trial: Trial, **values: Any) -> None:
        self.outcome.trials = [replace(each, **values) if each is trial else each for each in self.outcome.trials]

    def _is_confirmed(self, trial: Trial) -> bool:
        return len(trial.after) >= self._repeat and _is_faster(trial.before, trial.after)


def _ratio(before: Sequence[Run], after: Sequence[Run]) -> float:
    """How many times as fast a step is, by the means of the steps."""
    return (step_ms(before) or 0.0) / (step_ms(after) or 1.0)


def _is_faster(before: Sequence[Run], after: Sequence[Run]) -> bool:
    """True if each run after is faster than all before, and by more than a little. Of many runs, one may be slow."""
    return _ratio(before, after) >= LEAST and _are_apart(before, after, len(after) // _MANY)


def _is_open(before: Sequence[Run], after: Sequence[Run], most: int) -> bool:
    """True if up to `most` runs may decide otherwise: a gain no greater than runs of one side differ may be chance."""
    if len(after) >= most or _ratio(before, after) < LEAST:
        return False
    if not _are_apart(before, after, 0):
        return _are_apart(before, after, most // _MANY)
    gain = (step_ms(before) or 0.0) - (step_ms(after) or 0.0)
    return gain <= max(max(means) - min(means) for means in (_means(before), _means(after)))


def _are_apart(before: Sequence[Run], after: Sequence[Run], but: int) -> bool:
    """True if runs after are faster than those before, but for some of each."""
    return sorted(_means(after))[-1 - but] < sorted(_means(before))[but]


def _means(runs: Sequence[Run]) -> list[float]:
    return [run.mean_ms or 0.0 for run in runs]


def _why_untimed(run: Run) -> str:
    if run.failed:
        return failure(run)
    last = run.told.splitlines()[-1:] or [""]
    # A program may catch an exception and end as if all were well.
    return "none of its steps were seen" + (f": {last[0].strip()}" if last[0].strip() else "")
