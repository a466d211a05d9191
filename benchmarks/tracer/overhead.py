"""How much longer do steps take beside the tracer?

    python benchmarks/tracer/overhead.py [--rounds N] [--output FILE] [MODEL ...]

`trained.py` runs by itself and under `perflint trace` by turns, each time in a new process, and times
its own steps; the tracer's clock is not asked. With `--jobs` programs start side by
side, but run their steps one after the other on each GPU. A step is compared with the same steps of the run by
itself: those that the tracer records, those in which the profiler runs, those after the tracer let go.

Exits with 1 where the ratio of medians is above 1.05 for recorded steps, or above 1.5 for profiled ones.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import HERE, Spread, environment, log, measured, run, write

WARMUP, STEPS, WINDOW, AFTER = 10, 25, 8, 20
MODELS = ("resnet50", "resnet50-bf16", "gpt-124m", "gpt-124m-item", "gpt-small")
JUDGED = frozenset(MODELS) - {"gpt-small"}
"""Bound by launches, `gpt-small` shows what the tracer costs the host; no limit is set for that."""
LIMITS = {"recorded": 1.05, "profiled": 1.5}
PHASES = {
    # One step of the phase before may still run on the GPU, and its first sets things up.
    "recorded": range(WARMUP + 2, WARMUP + STEPS - 1),
    "profiled": range(WARMUP + STEPS + 1, WARMUP + STEPS + WINDOW + 1),
    "after": range(WARMUP + STEPS + WINDOW + 6, WARMUP + STEPS + WINDOW + AFTER),
}
"""By phase, its steps, from 0. The tracer's profiler runs for two steps more than its window."""


def ratios(alone: Sequence[Sequence[float]], beside: Sequence[Sequence[float]]) -> dict[str, Spread]:
    """By phase, the median time beside the tracer over that alone: of all runs, and of each pair of them."""
    found = {}
    for phase, steps in PHASES.items():
        medians = [[statistics.median(run_[step] for step in steps) for run_ in runs] for runs in (beside, alone)]
        pairs = [with_ / without for with_, without in zip(*medians, strict=True)]
        found[phase] = Spread(statistics.median(medians[0]) / statistics.median(medians[1]), min(pairs), max(pairs))
    return found


def measure(model: str, gpu: int, rounds: int) -> dict[str, Any]:
    """Run a model both ways, by turns."""
    alone: list[list[float]] = []
    beside: list[list[float]] = []
    program = [HERE / "trained.py", model, "--times", "times.json", "--steps", str(max(PHASES["after"]) + 1)]
    options = ["--warmup", str(WARMUP), "--steps", str(STEPS), "--window", str(WINDOW)]
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        for turn in range(rounds):
            for into in (alone, beside)[:: -1 if turn % 2 else 1]:
                traced = ["-m", "perflint", "trace", *options] if into is beside else []
                run([*traced, *program], Path(folder), gpu)
                into.append(json.loads((Path(folder) / "times.json").read_text()))
    found = ratios(alone, beside)
    plain = Spread.of(statistics.median(times[step] for step in PHASES["recorded"]) for times in alone)
    log(f"{model}: {plain.median:.2f} ms, " + ", ".join(f"{name} {ratio.median:.3f}" for name, ratio in found.items()))
    return {"ms": plain.to_json(), "ratios": {phase: ratio.to_json() for phase, ratio in found.items()}}


def table(models: dict[str, dict[str, Any]]) -> str:
    """For the documentation."""
    rows = ["| model | ms per step | recorded | profiled | afterwards |", "|---|---:|---:|---:|---:|"]
    for name, row in models.items():
        cells = [f"{median:.3f} ({low:.3f} to {high:.3f})" for median, low, high in row["ratios"].values()]
        rows.append(f"| {name} | {row['ms'][0]:.2f} | {' | '.join(cells)} |")
    return "\n".join(rows)


def main() -> int:
    """Measure, print, write; the exit status."""
    parser = argparse.ArgumentParser(description="time steps with the tracer and without")
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="programs that start at a time; one runs on a GPU")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "overhead.json")
    options = parser.parse_args()
    chosen = options.models
    found = measured(measure, chosen, options.jobs, options.rounds)
    write(options.output, {**environment(sys.argv[1:]), "rounds": options.rounds, "models": found})
    print(table(found))
    judged = [found[model]["ratios"] for model in JUDGED & set(found)]
    return int(
        len(found) < len(chosen) or any(row[phase][0] > limit for row in judged for phase, limit in LIMITS.items())
    )


if __name__ == "__main__":
    sys.exit(main())
