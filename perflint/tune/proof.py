"""Decides what a changed program computes: the same, but for rounding or other random numbers, or something else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import zip_longest
from math import inf

from perflint.findings import Safety
from perflint.frozen import dataclass
from perflint.tracer.sketch import first_other
from perflint.tracer.steps import StepSource
from perflint.verify.execution import Run
from perflint.verify.judging import difference, losses
from perflint.verify.states import States

_PLURAL = {"loss": "losses", "result": "results"}


class Kind(Enum):
    """A class of proof."""

    IDENTICAL = "identical"
    ROUNDING = "rounding"
    RANDOM = "other random numbers"
    OTHER = "changes the numbers"


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of a comparison, with the reason."""

    kind: Kind
    text: str


def compared(before: Sequence[Run], after: Run, tolerance: float, other_seeds: Callable[[], Run]) -> Proof:
    """The comparison of a run with runs of the program that it was made from.

    Rounding grows in a training, so losses may also differ as far as those of a run with other seeds do.
    """
    found = first_difference(before[0], after)
    if found is None:
        count, name = len(losses(after)), _name(after)
        if not count:
            return Proof(
                Kind.OTHER, "the program has no losses and calls no model in its first steps, so nothing is proved"
            )
        rest = "" if name == "result" else ", the final parameters, buffers and optimizer state"
        return Proof(Kind.IDENTICAL, f"{count} {_PLURAL[name]}{rest} are equal")
    # The probe gives seeds to all generators.
    reason = difference(before, after, Safety.UNSAFE, tolerance, seeded=True)
    if reason is not None and not after.failed:
        reason = difference([*before, other_seeds()], after, Safety.UNSAFE, tolerance, seeded=True)
    if reason is not None:
        return Proof(Kind.OTHER, reason)
    is_random = _states(before[0]).random_start != _states(after).random_start
    kept = "losses and the final state stay" if is_random else "losses, first gradients and the final state stay"
    kept = "results stay" if _name(after) == "result" else kept
    return Proof(Kind.RANDOM if is_random else Kind.ROUNDING, f"{found}; {kept} within the limits")


def first_difference(one: Run, other: Run) -> str | None:
    """The first difference of two runs bit for bit, in words; None if all is equal."""
    for at, (a, b) in enumerate(zip_longest(losses(one), losses(other))):
        if a != b and not (a != a and b != b):
            what = _name(one)
            is_other = None not in (a, b)
            return f"{what} {at + 1} is {b} instead of {a}" if is_other else f"one run has more {_PLURAL[what]}"
    return _state_difference(one, other)


def _state_difference(one: Run, other: Run) -> str | None:
    states = [_states(run) for run in (one, other)]
    name = first_other(states[0].final, states[1].final)
    if name is not None:
        return f"the final {name} differs"
    return None if states[0].random_final == states[1].random_final else "the random numbers differ at the end"


def only_losses_vary(run: Run, eager: Run, again: Run) -> bool:
    """True if three runs end in the same state bit for bit, and losses of the first vary as those of two equal runs do.

    A kernel may add up a loss in another order each time, and its gradient does not depend on that.
    """
    if any(_state_difference(eager, each) is not None for each in (run, again)):
        return False
    varied, found = (_distance(eager, each) for each in (again, run))
    return found <= 2 * varied


def _distance(one: Run, other: Run) -> float:
    """How far the losses of two runs are apart at most."""
    pairs = list(zip_longest(losses(one), losses(other), fillvalue=inf))
    return max((abs(a - b) for a, b in pairs if a == a or b == b), default=0.0)


def _states(run: Run) -> States:
    return run.seen.states if run.seen is not None else States()


def _name(run: Run) -> str:
    """What the numbers of a run are: losses, or results of models if no optimizer makes the steps."""
    return "result" if run.seen is not None and run.seen.source < StepSource.OPTIMIZER else "loss"
