"""The report of `perflint tune`: step times, each change with its gain and proof, and what was not kept."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from perflint.output.terminal import Style, printable
from perflint.tune.tuning import Outcome, Trial, step_ms
from perflint.verify.execution import Run


def tuning_text(outcome: Outcome, style: Style, stopped: str = "") -> str:
    """The whole report; `stopped` is the reason why the search did not end."""
    return "".join(f"{line}\n" for line in _lines(outcome, style, stopped))


def headline(outcome: Outcome) -> str:
    """The gain in one sentence."""
    before, after = step_ms(outcome.original), step_ms(outcome.best)
    if before is None or after is None:
        return "nothing was timed"
    if not outcome.kept:
        return f"nothing was gained: a step takes {before:.3f} ms"
    return f"{before / after:.2f} × as fast: a step takes {after:.3f} ms, not {before:.3f} ms"


def _lines(outcome: Outcome, style: Style, stopped: str) -> Iterator[str]:
    head = style("perflint tune:", "bold")
    if step_ms(outcome.original) is None or step_ms(outcome.best) is None:
        yield f"{head} {stopped or headline(outcome)}"
        return
    if stopped:
        yield f"{head} stopped: {stopped}. This is the best so far."
    gain, colon, rest = headline(outcome).partition(":")
    yield f"{head} {style(gain, 'bold', 'green') if outcome.kept else gain}{colon}{rest}"
    yield from limits(outcome)
    yield from clock(outcome)
    for title, trials in (("Kept:", outcome.kept), ("Not kept:", [t for t in outcome.trials if not t.kept])):
        if trials:
            yield style(title, "bold")
            for trial in trials:
                yield from _trial(trial)
    if outcome.refused:
        yield style("Not tried:", "bold")
        for name, reason in outcome.refused.items():
            yield f"  {name}: {printable(reason)}"


def clock(outcome: Outcome) -> Iterator[str]:
    """The number of steps and the clock that timed them, in a sentence."""
    seen = outcome.original[0].seen if outcome.original else None
    if seen is not None:
        name = seen.device if seen.clock == "device" else "the CPU"
        yield f"Means of {len(seen.times)} steps after warm-up, on the clock of {name}, torch {seen.torch}."


def limits(outcome: Outcome) -> Iterator[str]:
    """The shares of a step of the original in which the GPU works and batches are missing, in a sentence."""
    evidence = outcome.evidence
    if evidence is None:
        return
    if evidence.busy is not None:
        loading = f"{evidence.loading:.0%} of it wait for batches"
        yield f"In the original the GPU works {evidence.busy:.0%} of a step, and {loading}."
        if not outcome.kept and evidence.busy:
            yield f"With the same work, and the GPU never idle, a step would be {1 / evidence.busy:.2f} × as fast."
    elif evidence.loading:
        yield f"In the original {evidence.loading:.0%} of a step wait for batches."


def _trial(trial: Trial) -> Iterator[str]:
    gain = trial.gain
    shown = f"{gain:.2f} ×" if gain is not None else "fails"
    yield f"  {trial.change.name}: {trial.change.title}, {shown}"
    if gain is not None:
        yield f"    ms/step {spread(trial.before)} before, {spread(trial.after)} after"
        yield f"    whole run {_seconds(trial.before)} before, {_seconds(trial.after)} after{_memory(trial)}"
        if trial.pays_from is not None and trial.kept:
            yield f"    it starts more slowly: the whole run is shorter from about step {trial.pays_from:,} on"
    yield f"    {printable(verdict(trial))}"


def verdict(trial: Trial) -> str:
    """The proof of a change that is kept, or the reason why it is not."""
    if trial.reason or trial.proof is None:
        return trial.reason
    return f"{trial.proof.kind.value}: {trial.proof.text}"


def spread(runs: tuple[Run, ...]) -> str:
    """The least and the greatest mean of a step in some runs; empty if none was timed."""
    means = [fmean(run.seen.times) for run in runs if run.seen is not None and run.seen.times]
    if not means:
        return ""
    return f"{min(means):.3f}–{max(means):.3f}" if len(means) > 1 else f"{means[0]:.3f}"


def _seconds(runs: tuple[Run, ...]) -> str:
    return f"{min(run.seconds for run in runs):.1f} s"


def _memory(trial: Trial) -> str:
    peaks = [max((run.memory or 0.0 for run in runs), default=0.0) for runs in (trial.before, trial.after)]
    return f", peak memory {peaks[0] / 2**20:.0f} MiB before, {peaks[1] / 2**20:.0f} MiB after" if all(peaks) else ""
