"""Measures `perflint fix` against `perflint check` on the same folder.

    python benchmarks/speed/fix.py FOLDER [--rounds N]

CPU seconds of whole processes without a cache, alternating, profile `audit`; prints the medians and the ratio.
Nothing is written: `fix` prints its diff.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

VERBS = {"check": ["check"], "fix": ["fix"], "fix --risky-fixes": ["fix", "--risky-fixes"]}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="time perflint fix against perflint check")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each (default: %(default)s)")
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {verb: [] for verb in VERBS}
    for _ in range(options.rounds):
        for verb, arguments in VERBS.items():
            seconds[verb].append(cpu_seconds(arguments, options.folder))
    least = statistics.median(seconds["check"])
    for verb, runs in seconds.items():
        median = statistics.median(runs)
        print(f"perflint {verb}: {median:.2f} CPU seconds, {median / least:.2f} x check")


def cpu_seconds(arguments: list[str], folder: Path) -> float:
    """The processor time of one run of perflint."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "perflint", *arguments, "--profile", "audit", "--exit-zero", str(folder)]
    environment = os.environ | {"PERFLINT_NO_CACHE": "1"}
    ended = subprocess.run(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
    )
    if ended.returncode not in (0, 1):
        raise SystemExit(ended.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
