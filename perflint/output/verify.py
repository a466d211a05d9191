"""The report of the verification of fixes: times, losses, kept fixes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any

from perflint.output.json import values_of
from perflint.output.summary import MARKERS, count, counted_by
from perflint.output.terminal import Style, printable, printable_path
from perflint.tracer.steps import StepSource
from perflint.verify.execution import Run
from perflint.verify.judging import SLOWER, Figures, Measure, Timing, losses, measure, noise
from perflint.verify.plan import Candidate, Chosen
from perflint.verify.search import Dropped, Partial, Verification
from perflint.verify.stopping import Stopped

VERSION = 1
SHOWN = 8
"""Losses: the first, the last, and some between them."""


def verification_text(result: Verification, style: Style) -> str:
    """The report."""
    fixes_ = _fixes(result.kept, result.dropped, style)
    parts = [_times(result, style), _results(result, style), fixes_]
    return "\n".join("".join(f"{line}\n" for line in part) for part in parts if part)


def stopped_text(partial: Partial, stop: Stopped, style: Style) -> str:
    """The report of a verification that ended early."""
    title = f"{style('perflint verify:', 'bold')} stopped after {count(partial.runs, 'run')}: {stop.reason}"
    lines = [f"{title}. This is not the whole result.", *_fixes(partial.kept, partial.dropped, style)]
    if partial.undecided:
        lines.append(style(f"Not decided, {fixes(len(partial.undecided))}:", "bold"))
        lines += [f"  {_place(one)}" for one in _ordered(partial.undecided)]
    return "".join(f"{line}\n" for line in lines)


def verification_document(result: Verification, diff: str) -> dict[str, Any]:
    """The report as values of JSON; `diff` is what the kept fixes change."""
    trial = result.trial
    return {
        "version": VERSION,
        "program": _program(trial.before[0]),
        "timing": None if trial.timing is None else _timing(trial.timing),
        "losses": {
            "before": [_curve(run) for run in trial.before],
            "after": [_curve(run) for run in trial.after],
            "reseeded": None if result.reseeded is None else _curve(result.reseeded),
            "noise": _number(noise(result.originals)),
        },
        "measure": measure(result.originals).value,
        "kept": [_candidate(one) for one in _ordered(result.kept)],
        "dropped": [_drop(one) for one in result.dropped],
        "undecided": [],
        "stopped": None,
        "diff": diff,
    }


def stopped_document(partial: Partial, stop: Stopped, diff: str) -> dict[str, Any]:
    """The report of a verification that ended early, as values of JSON."""
    return {
        "version": VERSION,
        "program": None,
        "timing": None,
        "losses": None,
        "measure": None,
        "kept": [_candidate(one) for one in _ordered(partial.kept)],
        "dropped": [_drop(one) for one in partial.dropped],
        "undecided": [_candidate(one) for one in _ordered(partial.undecided)],
        "stopped": stop.reason,
        "diff": diff,
    }


def run_text(what: str, run: Run) -> str:
    """One run, in a line."""
    ms = f"{run.ms:.3f} ms/step" if run.ms is not None else "no steps timed"
    return f"{what}: {ms} ({run.seconds:.0f} s)"


def forecast_text(runs: int, first: Run) -> str:
    """The time that all runs take, by that of the first."""
    seconds = runs * first.seconds
    time = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
    return f"About {count(runs, 'run')} take {time} if no fix does harm, more if one does."


def fixes(number: int) -> str:
    """A number of fixes."""
    return f"{number} fix" if number == 1 else f"{number} fixes"


def _place(candidate: Candidate) -> str:
    """A fix, in words."""
    place = f"{candidate.path}:{candidate.line}"
    return printable_path(f"{place}  {MARKERS[candidate.safety]} {candidate.code} {candidate.name}")


def _ordered(chosen: Iterable[Candidate]) -> list[Candidate]:
    return sorted(chosen, key=lambda one: (one.path, one.line, one.code))


def _drop(dropped: Dropped) -> dict[str, Any]:
    return _candidate(dropped.candidate) | {"reason": dropped.reason}


def _times(result: Verification, style: Style) -> list[str]:
    trial = result.trial
    seen = trial.before[0].seen
    source = StepSource(seen.source).name.lower() if seen is not None else ""
    clock = f"on the clock of {seen.device if seen is not None and seen.clock == 'device' else 'the CPU'}"
    steps = len(seen.times) if seen is not None else 0
    runs = count(len(trial.after), "run")
    title = f"{style('perflint verify:', 'bold')} {runs} each, {count(steps, 'step')} after warm-up"
    lines = [f"{title} ({counted_by(source)}), {clock}"]
    if trial.timing is None:
        return [*lines, "The runs ended before the times could be compared."]
    timing = trial.timing
    lines.append(style(f"{'':8} {'ms/step':>10} {'runs':>21} {'middle half of steps':>25}", "bold"))
    for name, runs_, quartiles in (
        ("before", timing.median.before, timing.before_steps),
        ("after", timing.median.after, timing.after_steps),
    ):
        spread = f"{min(runs_):.3f}–{max(runs_):.3f}"
        lines.append(f"{name:8} {median(runs_):10.3f} {spread:>21} {f'{quartiles[0]:.3f}–{quartiles[1]:.3f}':>25}")
    is_slower = timing.median.is_more(SLOWER)
    verdict = "slower" if is_slower else "faster" if timing.is_faster else "no difference beyond the spread"
    lines.append(f"{_ratio('ratio', timing.median)}  {style(verdict, 'bold')}")
    others = (("mean", timing.mean), ("total", timing.total), ("memory", timing.memory))
    return [*lines, *(_ratio(name, figures) for name, figures in others if figures is not None)]


def _ratio(name: str, figures: Figures) -> str:
    """The ratio of a figure, with its range."""
    return f"{name:8} {figures.ratio:10.3f} {f'{min(figures.ratios):.3f}–{max(figures.ratios):.3f}':>21}"


def _results(result: Verification, style: Style) -> list[str]:
    kind = measure(result.originals)
    if kind is Measure.LOSS:
        return [*_losses(result, style)]
    if kind is Measure.OUTPUT:
        return ["The program computes no gradients; what it prints was compared."]
    return [
        "The program computes no gradients and prints nothing that stays the same; only its exit status was compared."
    ]


def _losses(result: Verification, style: Style) -> Iterator[str]:
    before, after = losses(result.trial.before[0]), losses(result.trial.after[0])
    length = min(len(before), len(after))
    yield style(f"{'loss':>8} {'before':>14} {'after':>14} {'difference':>12}", "bold")
    for at in _places(length):
        yield f"{at + 1:8} {before[at]:14.6g} {after[at]:14.6g} {after[at] - before[at]:12.3g}"
    own = noise(result.originals)
    runs = count(len(result.originals), "run")
    if own:
        yield f"The {runs} of the original differ from each other by up to {own:.3g}."
    else:
        yield f"The {runs} of the original have the same losses bit for bit."
    if result.reseeded is not None:
        other = noise([result.originals[0], result.reseeded])
        yield f"With other seeds they differ by up to {other:.3g}, by which unsafe and risky fixes are judged."
    gaps = [abs(two - one) for one, two in zip(before, after, strict=False) if math.isfinite(two - one)]
    greatest = max(gaps, default=0.0)
    if greatest:
        yield f"The greatest difference is {greatest:.3g}, at loss {gaps.index(greatest) + 1} of {length}."
    elif before == after:
        yield f"All {length} losses are the same bit for bit."


def _places(length: int) -> list[int]:
    """Some places of a curve, the first and the last among them."""
    if length <= SHOWN:
        return list(range(length))
    return sorted({round(part * (length - 1) / (SHOWN - 1)) for part in range(SHOWN)})


def _fixes(kept: Chosen, dropped: Sequence[Dropped], style: Style) -> list[str]:
    lines = []
    if kept:
        lines.append(style(f"Kept {fixes(len(kept))}:", "bold", "green"))
        lines += [f"  {_place(one)}" for one in _ordered(kept)]
    if dropped:
        lines.append(style(f"Dropped {fixes(len(dropped))}:", "bold", "red"))
        for one in dropped:
            lines += [f"  {_place(one.candidate)}", f"    {printable(one.reason)}"]
    return lines


def _program(run: Run) -> dict[str, Any]:
    seen = run.seen
    if seen is None:
        return {"torch": "", "device": "", "steps": 0, "step_source": "", "clock": ""}
    return {
        "torch": seen.torch,
        "device": seen.device,
        "steps": len(seen.times),
        "step_source": StepSource(seen.source).name.lower(),
        "clock": seen.clock,
    }


def _timing(timing: Timing) -> dict[str, Any]:
    return {
        "before_ms": list(timing.median.before),
        "after_ms": list(timing.median.after),
        "ratio": timing.median.ratio,
        "ratios": list(timing.median.ratios),
        "mean_ratio": timing.mean.ratio,
        "total_ratio": None if timing.total is None else timing.total.ratio,
        "memory_ratio": None if timing.memory is None else timing.memory.ratio,
        "harm": timing.harm,
        "slower": timing.median.is_more(SLOWER),
        "faster": timing.is_faster,
    }


def _curve(run: Run) -> list[list[float | None]]:
    return [[step, _number(loss)] for step, loss in (run.seen.losses if run.seen is not None else ())]


def _number(value: float) -> float | None:
    """A number of JSON, which has no NaN."""
    return value if math.isfinite(value) else None


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return values_of(candidate, "path line code name safety message")
