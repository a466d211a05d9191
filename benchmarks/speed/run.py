"""Measures the start-up of perflint.

    python benchmarks/speed/run.py [--runs N]

`perflint --version` and `perflint check` on a small clean file against a bare interpreter, medians of 20 interleaved
runs. `reach.py` measures whole projects.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from packages import table

CLEAN = '''"""A small file with nothing to report."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, x):
        return self.layers(x)
'''

PERFLINT = [sys.executable, "-m", "perflint"]

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Compiled modules are kept, as where packages are installed."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="measure start-up")
    parser.add_argument("--runs", type=int, default=20, help="runs of each figure (default: 20)")
    options = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} CPUs")
    print(start_up(options.runs))


def start_up(runs: int) -> str:
    """Wall-clock milliseconds of short commands; interleaved, so that a busy moment hits all alike."""
    with tempfile.TemporaryDirectory() as folder:
        clean = Path(folder) / "clean.py"
        clean.write_text(CLEAN, encoding="utf-8")
        checking = [*PERFLINT, "check", "--isolated", "--no-cache", str(clean)]
        commands = {
            "bare interpreter": [sys.executable, "-c", "pass"],
            "`perflint --version`": [*PERFLINT, "--version"],
            "`perflint check`, small clean file": checking,
        }
        samples: dict[str, list[float]] = {name: [] for name in commands}
        for run in range(runs + 1):
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
                if run:  # The first one compiles modules.
                    samples[name].append((time.perf_counter() - start) * 1000)
        imported = _imports_libcst(checking)
    medians = {name: statistics.median(times) for name, times in samples.items()}
    fastest = {name: min(times) for name, times in samples.items()}
    bare = "bare interpreter"
    rows = [
        [name, f"{medians[name]:.0f}", f"{medians[name] - medians[bare]:.0f}", f"{fastest[name] - fastest[bare]:.0f}"]
        for name in commands
    ]
    verdict = "imports libcst" if imported else "does not import libcst"
    header = ["start-up", "median ms", "over bare", "fastest runs over bare"]
    return f"\n{table(header, rows)}\n\nThe check of the clean file {verdict}."


def _imports_libcst(command: list[str]) -> bool:
    traced = [command[0], "-X", "importtime", *command[1:]]
    done = subprocess.run(traced, check=True, capture_output=True, text=True, env=ENVIRONMENT)
    return any(line.rsplit("|", 1)[-1].strip() == "libcst" for line in done.stderr.splitlines())


if __name__ == "__main__":
    main()
