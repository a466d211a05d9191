"""What habits cost in memory of this machine's GPU: the peak of three steps, bad form and good.

    python benchmarks/rules/memory.py [PREFIX …]

Takes the pairs of `models.py` whose names start so (by default those whose cost is memory) and prints a
table in Markdown, in GiB.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

import torch
from models import FAMILIES
from timing import OPTIONS, Run

DEFAULT = ("retain-graph", "create-graph", "attention-by-hand-1024", "frozen-body", "reentrant", "log-of-softmax")


def peak(make: Callable[[], tuple[Run, Run]], side: int) -> float:
    """The most memory that one side of a pair held, in GiB."""
    gc.collect()
    torch.cuda.empty_cache()
    run = make()[side]
    gc.collect()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() / 2**30


def main() -> None:
    """Print the table."""
    OPTIONS.device = "cuda"
    prefixes = tuple(sys.argv[1:]) or DEFAULT
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n")
    print("| pattern | where | bad GiB | good GiB | bad / good |\n|---|---|---|---|---|")
    for pair in (pair for family in FAMILIES for pair in family()):
        if pair.name.startswith(prefixes):
            bad, good = peak(pair.make, 0), peak(pair.make, 1)
            where = f"{pair.shape}, {pair.dtype}"
            print(f"| {pair.name}: {pair.pattern} | {where} | {bad:.2f} | {good:.2f} | {bad / good:.2f} |", flush=True)


if __name__ == "__main__":
    main()
