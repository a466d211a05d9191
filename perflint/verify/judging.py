"""True if a changed program does what the original does, and whether it takes more time or memory."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import Enum
from itertools import zip_longest
from statistics import fmean, median, quantiles

from perflint.findings import Safety
from perflint.frozen import dataclass
from perflint.verify.execution import Run
from perflint.verify.states import other_end, other_gradients, other_moves

SLOWER = 0.01
"""The share of a step from which on a difference counts."""
LARGER = 0.05
"""The share of the memory from which on a difference counts."""
_NOISE = 3.0
"""A difference up to this many times that between runs of the original does not count."""
_WINDOWS = 10
"""Stretches of a run whose mean losses are compared."""
_LEAST = 0.1
"""Losses below this share of the greatest are compared with it."""
_NUMBER = re.compile(
    r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\bnan\b|[-+]?\binf\b)(\s*(?:[mµun]?s|sec\w*|min|\w+/s)\b)?"
)
"""A number, and what makes it a time or a rate."""
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\).*\n(?: .*\n|\n)*(\S.*)", re.MULTILINE)
"""A traceback, and the first line of its exception."""
_CHAINED = re.compile(r"^(?:During handling of the|The) above exception", re.MULTILINE)
_PROGRESS = re.compile(r"\d\s*(?:it/s|s/it)\b")
"""The rate that tqdm prints: a line with it is a progress bar."""
_BAR = re.compile(r"[\u2500-\u259f|]+|\d+(?::\d\d)+|\d+/\d+|\d+%|\s+")
"""The bar, times, counts and spaces of a progress bar, which differ between runs."""


class Measure(Enum):
    """The way to find out whether the results are the same."""

    LOSS = "loss"
    OUTPUT = "output"
    STATUS = "exit status"


@dataclass(frozen=True, slots=True)
class Figures:
    """A figure of each run before and after, in turns."""

    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """After over before, by pairs of runs that followed each other."""
        return tuple(after / before for before, after in zip(self.before, self.after, strict=True) if before)

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return median(self.ratios)

    def is_more(self, than: float) -> bool:
        """True if each run after has more than the most before, and by more than a share."""
        return min(self.after) > max(self.before) and self.ratio > 1 + than

    def is_less(self, than: float) -> bool:
        """The same the other way round."""
        return max(self.after) < min(self.before) and self.ratio < 1 - than


@dataclass(frozen=True, slots=True)
class Timing:
    """What a program takes before and after: time and memory."""

    median: Figures
    """The median step of each run, in milliseconds."""
    mean: Figures
    """The mean step, which the median step of a program that stalls now and then does not show."""
    total: Figures | None
    """The seconds from start to end; None if the program was ended before."""
    memory: Figures | None
    """The most bytes that were in use; None if that is unknown."""
    before_steps: tuple[float, float]
    """The quartiles of all steps, in milliseconds."""
    after_steps: tuple[float, float]

    @property
    def harm(self) -> str | None:
        """How the program takes more time or memory than before; None if it does not."""
        for figures, share, text in (
            (self.median, SLOWER, "a step takes {} times as long"),
            (self.mean, SLOWER, "the mean of the steps is {} times as long, though their median is not"),
            (self.total, SLOWER, "the whole run takes {} times as long"),
            (self.memory, LARGER, "at its peak, the program uses {} times the memory"),
        ):
            if figures is not None and figures.is_more(share):
                low, high = min(figures.ratios), max(figures.ratios)
                return f"{text.format(f'{figures.ratio:.3f}')} ({low:.3f}–{high:.3f})"
        return None

    @property
    def is_faster(self) -> bool:
        """True if the median step is faster, and nothing takes more."""
        return self.median.is_less(SLOWER) and self.harm is None


def timing(before: Sequence[Run], after: Sequence[Run]) -> Timing | None:
    """The figures of two pairs of runs or more; None where the steps of one of them were not timed."""
    medians = _figures([run.ms for run in before], [run.ms for run in after])
    means = _figures([run.mean_ms for run in before], [run.mean_ms for run in after])
    if medians is None or means is None:
        return None
    totals = _figures([run.whole_seconds for run in before], [run.whole_seconds for run in after])
    memory = _figures([run.memory for run in before], [run.memory for run in after])
    return Timing(medians, means, totals, memory, _quartiles(before), _quartiles(after))


def _figures(before: Sequence[float | None], after: Sequence[float | None]) -> Figures | None:
    """Figures of runs in pairs; None if one of them has none."""
    first, second = (tuple(value for value in values if value is not None) for values in (before, after))
    complete = len(first) == len(before) == len(second) == len(after)
    return Figures(first, second) if before and complete else None


def _quartiles(runs: Sequence[Run]) -> tuple[float, float]:
    times = [ms for run in runs if run.seen is not None for ms in run.seen.times]
    low, _, high = quantiles(times, n=4, method="inclusive")
    return low, high


def measure(before: Sequence[Run]) -> Measure:
    """The most informative measure of a program's results."""
    if all(run.seen is not None and run.seen.losses for run in before):
        return Measure.LOSS
    return Measure.OUTPUT if _prints_alike(before) and before[0].out else Measure.STATUS


def _prints_alike(runs: Sequence[Run]) -> bool:
    """True if runs print the same but for numbers."""
    return len({_NUMBER.sub("#", _printed(run)) for run in runs}) == 1


def _printed(run: Run) -> str:
    """The output of a run. Progress bars are left without bar, times and counts."""
    lines = run.out.splitlines(keepends=True)
    return "".join(_BAR.sub(" ", line).strip() + "\n" if _PROGRESS.search(line) else line for line in lines)


def losses(run: Run) -> list[float]:
    """The losses of a run in order."""
    return [loss for _, loss in run.seen.losses] if run.seen is not None else []


def difference(before: Sequence[Run], after: Run, safety: Safety, tolerance: float, seeded: bool = False) -> str | None:
    """How the results of a run differ from those of others by more than `safety` allows; None where they do not.

    A run that is to be the same must be the same bit for bit, if runs before are. If these differ
    from each other, so may it. `tolerance` is the share by which an unsafe or risky fix may change them.
    With `seeded`, all generators of random numbers have seeds, also where no two runs before show it.
    """
    if after.failed:
        return failure(after)
    known = [run.seen.states for run in before if run.seen is not None]
    now = after.seen.states if after.seen is not None and len(known) == len(before) else None
    if now is not None and (found := other_moves(known, now)):
        return found
    if measure(before) is Measure.LOSS:
        found = _other_losses([losses(run) for run in before], losses(after), safety, tolerance)
        if found is not None:
            return found
    if now is not None and (found := other_gradients(known, now, safety, tolerance, seeded)):
        return found
    shown = [_printed(run) for run in before]
    if _prints_alike(before) and (found := _other_output(shown, _printed(after), safety, tolerance)):
        return found
    return other_end(known, now, safety, tolerance) if now is not None else None


def failure(run: Run) -> str:
    """How a run failed."""
    if run.status is None:
        return f"it did not end within {run.seconds:.0f} s"
    last = _raised(run.told) or next((line for line in reversed(run.told.splitlines()) if line.strip()), "")
    how = f"was ended by signal {-run.status}" if run.status < 0 else f"failed with status {run.status}"
    return f"the program {how}" + (f": {last.strip()}" if last else "")


def _raised(told: str) -> str:
    """The first line of the last exception, or of the one that led to it; empty without a traceback."""
    found, end = "", 0
    for each in _TRACEBACK.finditer(told):
        if not _CHAINED.search(told, end, each.start()):
            found = each[1]
        end = each.end()
    return found


def noise(before: Sequence[Run]) -> float:
    """The greatest difference between the losses of some runs at the same place."""
    curves = [losses(run) for run in before]
    return max((_spread(values) for values in zip(*curves, strict=False)), default=0.0)


def _other_losses(before: list[list[float]], after: list[float], safety: Safety, tolerance: float) -> str | None:
    counts = {len(curve) for curve in before}
    if len(counts) == 1 and len(after) not in counts:
        return f"it computes {len(after)} losses instead of {counts.pop()}"
    length = min(len(after), *counts)
    if all(_same(before[0], curve) for curve in before):
        place = next((at for at in range(length) if not _same([before[0][at]], [after[at]])), None)
        if place is None:
            return None
        if safety is Safety.SAFE:
            was, now = before[0][place], after[place]
            return f"loss {place + 1} changes from {was:.9g} to {now:.9g}, and a safe fix must not change it"
    return _other_means(before, after, length, 0.0 if safety is Safety.SAFE else tolerance)


def _other_means(before: list[list[float]], after: list[float], length: int, share: float) -> str | None:
    """How the mean losses of some stretch differ by more than runs of the original do, and a share of the loss."""
    stretches = [slice(length * part // _WINDOWS, length * (part + 1) // _WINDOWS) for part in range(_WINDOWS)]
    stretches = [part for part in stretches if part.stop > part.start]
    means = [[fmean(curve[part]) for curve in before] for part in stretches]
    apart = [fmean(_spread(at) for at in zip(*(curve[part] for curve in before), strict=True)) for part in stretches]
    sizes = [abs(values[0]) if math.isfinite(values[0]) else 0.0 for values in means]
    # A stretch of few runs shows by chance less of their noise than there is; all stretches together hardly do.
    usual = fmean(apart)
    for index, (part, known) in enumerate(zip(stretches, means, strict=True)):
        now = fmean(after[part])
        # Runs drift apart: what the next stretch shows of it may begin here.
        allowed = _NOISE * max(usual, *apart[: index + 2]) + share * max(sizes[index], _LEAST * max(sizes))
        if _distance(now, known) > allowed:
            was, place = median(known), f"losses {part.start + 1} to {part.stop}"
            change = f" ({(now / was - 1) * 100:+.1f}%)" if was else ""
            return f"the mean of {place} changes from {was:.6g} to {now:.6g}{change}"
    return None


def _other_output(before: list[str], after: str, safety: Safety, tolerance: float) -> str | None:
    if all(text == after for text in before):
        return None
    if _NUMBER.sub("#", after) != _NUMBER.sub("#", before[0]):
        return f"it prints something else: {_first_other_line(before[0], after)}"
    share = 0.0 if safety is Safety.SAFE else tolerance
    columns = [column for line in before[0].splitlines() for column in _columns(line)]
    rows = list(zip(columns, *(_numbers(text) for text in (*before, after)), strict=True))
    # Values that differ from run to run, such as times, are not results, nor are those of other lines in their place.
    varying = {column for column, *known, _ in rows if _spread(known)}
    for column, *known, now in rows:
        if column not in varying and _distance(now, known) > share * abs(known[0]):
            return f"it prints {now:g} instead of {known[0]:g}"
    return None


def _columns(line: str) -> list[tuple[str, int]]:
    """The place of each number of a line: the words of the line, and how many numbers are before it."""
    words = _NUMBER.sub("#", line)
    return [(words, at) for at in range(len(_NUMBER.findall(line)))]


def _first_other_line(before: str, after: str) -> str:
    lines = zip_longest(before.splitlines(), after.splitlines())
    was, now = next((pair for pair in lines if pair[0] != pair[1]), ("", ""))
    return f"`{now or ''}` instead of `{was or ''}`"


def _numbers(text: str) -> list[float]:
    """The numbers of a text that are not durations, which a fix is to change."""
    return [math.nan if found[1] else float(found[0]) for found in _NUMBER.findall(text)]


def _same(one: Sequence[float], other: Sequence[float]) -> bool:
    """True if numbers are the same bit for bit, where one NaN is as good as another."""
    return all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=False))


def _spread(values: Sequence[float]) -> float:
    """How far some numbers are apart."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) == len(values):
        return max(values) - min(values)
    return math.inf if finite else 0.0


def _distance(value: float, known: Sequence[float]) -> float:
    """How far a number is outside of the range of some others."""
    if not all(map(math.isfinite, known)) or not math.isfinite(value):
        return 0.0 if not math.isfinite(value) and not math.isfinite(known[0]) else math.inf
    return max(value - max(known), min(known) - value, 0.0)
