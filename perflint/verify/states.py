"""Compares the states that the probe recorded in runs of a training."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

from perflint.findings import Safety
from perflint.frozen import dataclass, field
from perflint.tracer.sketch import Sketch, Sketches, distance, first_other, norm, same_bits

_NOISE = 3.0
"""A difference up to this many times that between runs of the original does not count."""
_STILL = 1e-3
"""A parameter that moves by less than this share of the others' movement, for each element, may stand still."""
_PARAMETER = "parameter "


@dataclass(frozen=True, slots=True)
class States:
    """The states of one run, by names such as `parameter Net.fc.weight` and `state exp_avg of Net.fc.weight`."""

    start: Sketches = field(default_factory=dict)
    """Parameters, buffers and the states of the optimizers, each before its optimizer's first step."""
    gradients: Sketches = field(default_factory=dict)
    """The gradients at these first steps, by the names of the parameters."""
    final: Sketches = field(default_factory=dict)
    """As `start`, after the last step."""
    random_start: Mapping[str, str] = field(default_factory=dict)
    """Digests of the generators of random numbers at the first of these first steps."""
    random_final: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> States:
        """Read what the probe wrote."""
        if not values:
            return cls()
        sketches = {
            kind: {name: Sketch(size, bits, tuple(sums)) for name, (size, bits, *sums) in values[kind].items()}
            for kind in ("start", "gradients", "final")
        }
        return cls(**sketches, random_start=values["random_start"], random_final=values["random_final"])

    def movements(self) -> dict[str, float]:
        """For each parameter the distance that it moved; 0 only if no bit changed."""
        return {
            name: distance({name: first}, {name: last})
            for name, first in self.start.items()
            if name.startswith(_PARAMETER) and (last := self.final.get(name)) is not None
        }


def other_end(before: Sequence[States], after: States, safety: Safety, tolerance: float) -> str | None:
    """How the final state differs from that of other runs by more than they differ from each other; None if not.

    `tolerance` is the share of the way from the first state to the last by which an unsafe or risky fix may change it.
    """
    known = [states.final for states in before]
    if safety is Safety.SAFE and _all_same(known):
        name = first_other(known[0], after.final)
        return None if name is None else f"the final {name} changes, and a safe fix must not change it"
    share = 0.0 if safety is Safety.SAFE else tolerance
    for kind, text in ((_PARAMETER, "parameters"), ("buffer ", "buffers"), ("state ", "states of the optimizers")):
        # A fix may remove tensors, or rename them.
        names = {name for name in after.final if name.startswith(kind) and all(name in state for state in known)}
        last = [_part(state, names) for state in known]
        way = max(distance(_part(states.start, names), end) for states, end in zip(before, last, strict=True))
        found = _apart(last, _part(after.final, names), way, share)
        if found is not None:
            return f"the final {text} differ by {found} of their change since the first step"
    return None


def other_moves(before: Sequence[States], after: States) -> str | None:
    """The parameters that move only before, or only after, in words; None if the same ones do."""
    known, now = [states.movements() for states in before], after.movements()
    names = [name for name in now if all(name in moves for moves in known)]
    stopped = [name for name in names if not now[name] and all(_moves(name, moves, after) for moves in known)]
    started = [name for name in names if not any(moves[name] for moves in known) and _moves(name, now, after)]
    for found, change in ((stopped, "no longer moves"), (started, "moves, which it did not before")):
        if found:
            more = f", as {len(found) - 1} more" if len(found) > 1 else ""
            return f"{found[0]} {change}{more}"
    return None


def _moves(name: str, moves: Mapping[str, float], states: States) -> bool:
    """True if a parameter moves by more than rounding explains, compared with all parameters together."""
    size = sum(states.start[each].size for each in moves if each in states.start)
    whole = math.hypot(*moves.values())
    return moves[name] * math.sqrt(size) > _STILL * whole * math.sqrt(states.start[name].size)


def other_gradients(
    before: Sequence[States], after: States, safety: Safety, tolerance: float, seeded: bool = False
) -> str | None:
    """How the gradients of the first steps differ from those of runs that begin from the same state; None if not.

    With `seeded`, all generators of random numbers have seeds.
    """
    known = [states.gradients for states in _alike(before, after, seeded)]
    if not known:
        return None
    if safety is Safety.SAFE and _all_same(known):
        name = first_other(known[0], after.gradients)
        # A gradient of zeros is as good as none.
        if name is None or not _apart(known, after.gradients, 0.0, 0.0):
            return None
        return f"the gradient of {name} changes in the first step, and a safe fix must not change it"
    share = 0.0 if safety is Safety.SAFE else tolerance
    found = _apart(known, after.gradients, norm(known[0]), share)
    return None if found is None else f"from the same state, the gradients of the first step change by {found}"


def _alike(before: Sequence[States], after: States, seeded: bool) -> list[States]:
    """The runs that begin from the same state, with the same random numbers."""
    # A generator that no two runs have in the same state was never seeded: it decides nothing, or all runs differ.
    generators = {
        name
        for one, other in combinations(before, 2)
        for name, digest in one.random_start.items()
        if digest == other.random_start.get(name)
    }
    if seeded:
        generators = {name for states in before for name in states.random_start}
    return [
        states
        for states in before
        if all(states.random_start.get(name) == after.random_start.get(name) for name in generators)
        and same_bits(states.start, after.start)
    ]


def _apart(known: Sequence[Sketches], now: Sketches, size: float, share: float) -> str | None:
    """The distance of a state from some others as a share of `size`, if it is more than theirs and `share` allow."""
    band = max((distance(*pair) for pair in combinations(known, 2)), default=0.0)
    gap = min(distance(state, now) for state in known)
    if gap <= _NOISE * band + share * size or not math.isfinite(norm(known[0])):
        return None
    return f"{gap / size if size else math.inf:.1%}"


def _part(state: Sketches, names: Collection[str]) -> Sketches:
    return {name: state[name] for name in names if name in state}


def _all_same(states: Sequence[Sketches]) -> bool:
    return all(same_bits(states[0], state) for state in states)
