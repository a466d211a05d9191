"""How the scripts of this folder time a pattern against its cure, and print what they find.

Both run by turns; a row holds the medians in milliseconds, and the median, least and greatest ratio
of neighbouring runs. `--device cpu --quick` tries a script out where there is no GPU; its figures
mean nothing. `--memory` prints the most memory that each side of a pair holds, as a table in Markdown.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

Run = Callable[[], object]


@dataclass
class Options:
    """What the command line said; the device is asked for while pairs are made."""

    device: str = "cuda"
    quick: bool = False
    memory: bool = False


OPTIONS = Options()


@dataclass(frozen=True)
class Pair:
    """A pattern and its cure; `make` builds both when their turn comes, so that memory is freed between.

    `scope` is "operation" or "step": what `make`'s functions do. `dtype` and `shape` say it in words.
    """

    name: str
    rule: str
    pattern: str
    dtype: str
    shape: str
    make: Callable[[], tuple[Run, Run]]
    scope: str = "operation"
    tf32: bool = False


def synchronize() -> None:
    """Wait for the device."""
    if OPTIONS.device == "cuda":
        torch.cuda.synchronize()


def seconds(run: Run, times: int) -> float:
    """Mean wall time of a run, in seconds, with the device's work."""
    synchronize()
    start = time.perf_counter()
    for _ in range(times):
        run()
    synchronize()
    return (time.perf_counter() - start) / times


def compared(bad: Run, good: Run, scope: str) -> list[tuple[float, float]]:
    """Seconds of both, by turns."""
    for _ in range(1 if OPTIONS.quick else 3):
        bad()
        good()
    if OPTIONS.quick:
        return [(seconds(bad, 1), seconds(good, 1)) for _ in range(2)]
    # What a run leaves queued hides the first wait of the next, so that steps come in longer rows.
    least, target = (8, 0.05) if scope == "step" else (3, 0.02)
    each = seconds(good, 5)
    times, repeats = max(least, min(300, int(target / each))), 5 if each > 0.01 else 9
    times = max(1, min(times, int(2 / seconds(bad, 1))))
    return [(seconds(bad, times), seconds(good, times)) for _ in range(repeats)]


def measure(pair: Pair, run: str) -> str:
    """The pair's row."""
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = pair.tf32
    gc.collect()
    bad, good = pair.make()
    return row(pair, run, compared(bad, good, pair.scope))


def row(pair: Pair, run: str, runs: list[tuple[float, float]]) -> str:
    """The pair's row, of the seconds of both sides in each turn."""
    ratios = [left / right for left, right in runs]
    fields = {
        "run": f'"{run}"',
        "rules": "[" + ", ".join(f'"{code}"' for code in pair.rule.split()) + "]",
        "pattern": f'"{pair.pattern}"',
        "scope": f'"{pair.scope}"',
        "dtype": f'"{pair.dtype}"',
        "shape": f'"{pair.shape}"',
        "bad_ms": round(statistics.median(left for left, _ in runs) * 1e3, 4),
        "good_ms": round(statistics.median(right for _, right in runs) * 1e3, 4),
        "ratio": round(statistics.median(ratios), 3),
        "low": round(min(ratios), 3),
        "high": round(max(ratios), 3),
    }
    return "\n".join([f"[rows.{pair.name}]", *(f"{key} = {value}" for key, value in fields.items()), ""])


MEMORY_COLUMNS = "| pattern | where | bad GiB | good GiB | bad / good | bad reserved | good reserved |"


def memory(pair: Pair) -> str:
    """The pair's line of the table: the peaks that were allocated, and that the allocator reserved, in GiB."""
    # What a bad side leaves on other devices would count for the good one.
    (good, good_reserved), (bad, bad_reserved) = peak(pair, 1), peak(pair, 0)
    peaks = f"{bad:.2f} | {good:.2f} | {bad / good:.2f} | {bad_reserved:.2f} | {good_reserved:.2f}"
    return f"| {pair.name}: {pair.pattern} | {pair.shape}, {pair.dtype} | {peaks} |"


def peak(pair: Pair, side: int) -> tuple[float, float]:
    """The most memory that three runs of one side of a pair held, allocated and reserved, in GiB."""
    gc.collect()
    torch.cuda.empty_cache()
    run = pair.make()[side]
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(3):
        run()
    synchronize()
    return torch.cuda.max_memory_allocated() / 2**30, torch.cuda.max_memory_reserved() / 2**30


def options(description: str | None) -> list[str]:
    """Read the command line; what is left over of it are the prefixes of names."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("prefixes", nargs="*", metavar="PREFIX", help="only the rows whose name starts so")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--quick", action="store_true", help="tiny sizes and few runs, to try the script out")
    parser.add_argument("--memory", action="store_true", help="peaks of a GPU's memory instead of times")
    given = parser.parse_args()
    OPTIONS.device, OPTIONS.quick, OPTIONS.memory = given.device, given.quick, given.memory
    return given.prefixes or [""]


def header(run: str) -> str:
    """The table of the run: device, torch version and source."""
    device = torch.cuda.get_device_name() if OPTIONS.device == "cuda" else "CPU"
    source = f"benchmarks/rules/{Path(sys.argv[0]).name}"
    return f'[runs.{run}]\ndevice = "{device}"\ntorch = "{torch.__version__}"\nsource = "{source}"\n'


def main(run: str, description: str | None, families: Iterable[Callable[[], Iterator[Pair]]]) -> None:
    """Measure the rows that the command line names, and print them."""
    prefixes = tuple(options(description))
    print(
        f"{torch.cuda.get_device_name()}\n\n{MEMORY_COLUMNS}\n|---|---|---|---|---|---|---|"
        if OPTIONS.memory
        else header(run),
        flush=True,
    )
    for pair in (pair for family in families for pair in family()):
        if pair.name.startswith(prefixes):
            try:
                print(memory(pair) if OPTIONS.memory else measure(pair, run), flush=True)
            except (ImportError, RuntimeError, TypeError, ValueError) as error:
                print(f"# {pair.name}: {str(error).splitlines()[0]}\n", flush=True)


def tensor(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Standard normal values on the device."""
    return torch.randn(*shape, device=OPTIONS.device).to(dtype)
