"""Measures how time and memory grow with the size of a project, or the start-up of perflint.

    python benchmarks/speed/growth.py [--lines 1000,10000,100000] [--jobs N] [--json FILE]
    python benchmarks/speed/growth.py --start-up 20

Generates projects of these sizes, of packages with ten modules of 132 lines each: a layer, helpers and training loops.
Each module imports the two before it. The figures are those of one cold `perflint check` in N processes, all rules,
profile audit: CPU seconds of all processes, wall seconds, and the memory of the largest process.

Start-up is `perflint --version` and `perflint check` on a small clean file against a bare interpreter, medians of so
many interleaved runs. `reach.py` measures whole projects.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from packages import table

PERFLINT = [sys.executable, "-m", "perflint"]
CHECK = [*PERFLINT, "check", "--isolated", "--exit-zero", "--profile", "audit", "--no-cache"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
PACKAGE = 10
"""Modules of a package."""
FUNCTIONS = 6
"""Blocks of code in a module."""

HEAD = '''"""Part {number} of a generated project."""

import torch
from torch import nn

from {before} import {kind}{before_number}, scaled{before_number}
from {other} import mean_of{other_number}


def mean_of{number}(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The mean of the values under a mask."""
    return (values * mask).sum() / mask.sum()


def scaled{number}(x, factor=0.5):
    """A part of the input."""
    y = x.to(torch.float32) * factor
    if y.shape[0] > 4:
        y = y[:4]
    return y


class {kind}{number}(nn.Module):
    """A layer with a buffer."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width, bias=False)
        self.register_buffer("scale", torch.ones(width))
        self.inner = {kind}{before_number}(width) if width > 8 else None

    def forward(self, x):
        hidden = torch.relu(self.first(x)) * self.scale
        hidden = self.second(scaled{number}(hidden))
        return hidden if self.inner is None else self.inner(hidden)
'''
BLOCK = '''

def step{number}_{block}(model, optimizer, batches, device):
    """One pass over the batches."""
    total, seen = 0.0, 0
    for index, (inputs, targets) in enumerate(batches):
        inputs, targets = inputs.to(device), targets.to(device)
        outputs = model(scaled{before_number}(inputs))
        loss = mean_of{other_number}((outputs - targets) ** 2, targets > {block})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += len(inputs)
        if index % 10 == {block}:
            total += loss.item()
    return total / max(seen, 1)
'''
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="measure how time and memory grow with a project")
    parser.add_argument("--lines", default="1000,10000,100000", help="sizes of projects (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to a file")
    parser.add_argument("--start-up", type=int, metavar="RUNS", help="measure the start-up instead")
    options = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, {len(os.sched_getaffinity(0))} CPUs", flush=True)
    if options.start_up:
        print(start_up(options.start_up))
        return
    rows = []
    for lines in map(int, options.lines.split(",")):
        with tempfile.TemporaryDirectory(prefix="perflint-growth-") as temporary:
            rows.append(measured(Path(temporary), lines, options.jobs))
            print(rows[-1], flush=True)
    print(table(list(rows[0]), [[str(value) for value in row.values()] for row in rows]))
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def measured(folder: Path, lines: int, jobs: int) -> dict[str, float]:
    """The figures of a project of a number of lines."""
    files, written = generate(folder, lines)
    command = [*CHECK, "--jobs", str(jobs), str(folder)]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=ENVIRONMENT) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    spent = used.ru_utime + used.ru_stime
    return {
        "lines": written,
        "files": files,
        "CPU seconds": round(spent, 2),
        "ms per 1,000 lines": round(spent * 1e6 / written),
        "wall seconds": round(time.perf_counter() - began, 2),
        "peak MiB": used.ru_maxrss // 1024,
    }


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


def generate(folder: Path, lines: int) -> tuple[int, int]:
    """Write modules until the project has a number of lines; gives the numbers of files and lines."""
    (folder / "pyproject.toml").touch()
    files = written = 0
    while written < lines:
        text = module(files)
        path = folder / name_of(files).replace(".", "/")
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True)
            (path.parent / "__init__.py").touch()
        path.with_suffix(".py").write_text(text, encoding="utf-8")
        files += 1
        written += text.count("\n")
    return files, written


def name_of(number: int) -> str:
    """The full name of a module."""
    return f"package{number // PACKAGE}.part{number}"


def module(number: int) -> str:
    """The text of a module."""
    before, other = max(number - 1, 0), max(number - 2, 0)
    names = {
        "number": number,
        "before": name_of(before),
        "before_number": before,
        "other": name_of(other),
        "other_number": other,
        "kind": "Layer",
    }
    return HEAD.format(**names) + "".join(BLOCK.format(block=block, **names) for block in range(FUNCTIONS))


if __name__ == "__main__":
    main()
