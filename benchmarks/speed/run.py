"""Measures start-up, throughput and memory of perflint.

    python benchmarks/speed/run.py [--src DIR] [--only start-up|timm|memory]

Start-up: `perflint --version` and `perflint check` on a small clean file against a bare
interpreter, medians of 20 interleaved runs. Throughput: CPU seconds of `perflint check
--profile audit` on timm, one cold process, against `libcst.parse_module` of the same files,
alternating in one run. Memory: peak resident set size on transformers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from packages import VERSIONS, add_source_option, sources, table

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

PARSE = """
import pathlib, sys, libcst
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.py")):
    libcst.parse_module(path.read_bytes())
"""

PERFLINT = [sys.executable, "-m", "perflint"]

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Compiled modules are kept, as where packages are installed."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="measure start-up, throughput and memory")
    add_source_option(parser)
    parser.add_argument("--only", choices=["start-up", "timm", "memory"])
    parser.add_argument("--runs", type=int, default=20, help="runs of each start-up figure (default: 20)")
    options = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} CPUs")
    if options.only in (None, "start-up"):
        print(start_up(options.runs))
    if options.only in (None, "timm"):
        with sources(["timm"], options.src) as folder:
            print(throughput(folder / "timm"))
    if options.only in (None, "memory"):
        with sources(["transformers"], options.src) as folder:
            print(memory(folder / "transformers"))


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


def throughput(folder: Path, rounds: int = 3) -> str:
    """CPU seconds of checking a package against those of parsing it with libcst."""
    checking = [*PERFLINT, "check", "--isolated", "--no-cache", "--exit-zero", "--profile", "audit"]
    samples: dict[str, list[float]] = {"parse": [], "check": []}
    for _ in range(rounds):
        samples["parse"].append(_cpu_seconds([sys.executable, "-c", PARSE, str(folder)]))
        samples["check"].append(_cpu_seconds([*checking, str(folder)]))
    parse, check = statistics.median(samples["parse"]), statistics.median(samples["check"])
    rows = [
        ["`libcst.parse_module` of each file", f"{parse:.2f}", "1.00"],
        ["`perflint check --profile audit`", f"{check:.2f}", f"{check / parse:.2f}"],
    ]
    what = f"timm {VERSIONS['timm']}, one cold process"
    return f"\n{table([what, 'CPU seconds', 'ratio'], rows)}"


def _cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


PEAK = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, used.ru_maxrss, used.ru_utime + used.ru_stime]))
"""


def memory(folder: Path) -> str:
    """The peak resident set size of a check."""
    checking = [*PERFLINT, "check", "--isolated", "--no-cache", "--exit-zero", "--profile", "audit", str(folder)]
    # A process of its own, since the peak of children is the highest of all children so far.
    done = subprocess.run([sys.executable, "-c", PEAK, *checking], check=True, capture_output=True, text=True)
    status, peak, seconds = json.loads(done.stdout)
    if status:
        raise SystemExit(f"perflint exited with {status}:\n{done.stderr}")
    unit = 1 if sys.platform == "darwin" else 1024
    row = [f"`perflint check --profile audit` on transformers {VERSIONS['transformers']}", f"{peak * unit / 2**20:.0f}"]
    return f"\n{table(['memory', 'peak MiB', 'CPU seconds'], [[*row, f'{seconds:.1f}']])}"


if __name__ == "__main__":
    main()
