"""What the measurements of the tracer share: commands, environment, statistics, results."""

from __future__ import annotations

import fcntl
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SMALL = {"width": 128, "heads": 4, "layers": 6, "vocabulary": 512}
"""Of a GPT (`../rules/programs.py`) that is so small that the GPU waits for each launch."""
LOCK = "BENCH_LOCK"
"""The name of the variable that names the file whose lock says who has the GPU."""
_BEGAN = time.perf_counter()


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some values, and the least and the greatest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Of at least one value."""
        kept = sorted(values)
        return cls(statistics.median(kept), kept[0], kept[-1])

    def to_json(self) -> list[float]:
        """Median, least, greatest."""
        return [round(value, 4) for value in (self.median, self.low, self.high)]


def run(command: Sequence[str | Path], folder: Path, gpu: int | None = None, limit: float = 300) -> str:
    """Run this Python in a folder, with this perflint and one GPU or all; its standard error.

    Raises RuntimeError where it fails.
    """
    paths = filter(None, (str(ROOT), os.environ.get("PYTHONPATH", "")))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    if gpu is not None:
        environment |= {"CUDA_VISIBLE_DEVICES": str(gpu), LOCK: str(Path(tempfile.gettempdir()) / f"bench-gpu{gpu}")}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    return done.stderr


@contextmanager
def alone() -> Iterator[None]:
    """Have the GPU for oneself among the programs of these measurements: others may start meanwhile, and wait."""
    name = os.environ.get(LOCK)
    if not name:
        yield
        return
    with open(name, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def measured(measure: Callable[..., T], names: Sequence[str], jobs: int, *arguments: Any) -> dict[str, T]:
    """Call `measure(name, gpu, *arguments)` for each name, `jobs` at a time; names whose program fails are left out."""

    def attempt(number: int) -> T | None:
        try:
            return measure(names[number], number % gpus(), *arguments)
        except RuntimeError as error:
            log(str(error))
            return None

    with ThreadPoolExecutor(jobs) as pool:
        rows = pool.map(attempt, range(len(names)))
        return {name: row for name, row in zip(names, rows, strict=True) if row is not None}


def gpus() -> int:
    """How many GPUs there are; one where there is none, to try things."""
    import torch

    return max(torch.cuda.device_count(), 1)


def environment(arguments: Sequence[str]) -> dict[str, Any]:
    """With what, and how, something was measured."""
    import torch

    return {
        "command": " ".join(["python", str(Path(sys.argv[0]).resolve().relative_to(ROOT)), *arguments]),
        "date": datetime.now(UTC).date().isoformat(),
        "gpus": [torch.cuda.get_device_name(device) for device in range(torch.cuda.device_count())],
        "python": sys.version.split()[0],
        "torch": torch.__version__,
    }


def write(path: Path, document: dict[str, Any]) -> None:
    """Write results for people to read and compare."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def log(text: str) -> None:
    """Say on standard error what is going on, and when."""
    print(f"[{time.perf_counter() - _BEGAN:6.1f}] {text}", file=sys.stderr, flush=True)
