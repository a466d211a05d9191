"""What processes of one host cost that use its disk and its first GPU together; a single GPU is enough.

Prints the rows of `perflint/rules/worth.toml`, and the memory of the first GPU as comments.
Usage: python benchmarks/rules/processes.py [--device cpu --quick] [PREFIX …]  (parts whose name starts so)
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from threading import Barrier
from typing import Any

import torch
from programs import GPT
from timing import OPTIONS, Options, Pair, Run, header, options, row
from torch import multiprocessing as processes

WHERE = "GPT-2 of 124 M parameters, weights in float32"


def written(rank: int, folder: str, given: Options, barrier: Barrier, count: int) -> None:
    """One of the processes that save their weights; the first prints what the work of all costs beside its own."""
    OPTIONS.device, OPTIONS.quick = given.device, given.quick
    # Two processes that write the same file may break it.
    weights, path = GPT().to(OPTIONS.device).state_dict(), Path(folder) / f"saved-{rank}.pt"

    def seconds(all_save: bool) -> float:
        barrier.wait()
        start = time.perf_counter()
        if all_save or not rank:
            torch.save(weights, path)
        barrier.wait()
        return time.perf_counter() - start

    turns = [(seconds(True), seconds(False)) for _ in range(2 if OPTIONS.quick else 6)][1:]
    if not rank:
        words = f"torch.save in each of {count} processes, to files of their own, against the first alone"
        pair = Pair(f"unguarded-checkpoint-{count}", "TPF926", words, "float32", f"{WHERE}, on one GPU", _none)
        print(row(pair, "processes", turns), flush=True)


def _none() -> tuple[Run, Run]:
    raise NotImplementedError("the processes have the sides of this pair")


def loaded(_: int, path: str, given: Options, barrier: Barrier) -> None:
    """One of the processes that load a checkpoint of the first GPU, and whose models lie elsewhere, here on the CPU."""
    OPTIONS.quick = given.quick
    model, ways = GPT(), ({"map_location": "cpu", "mmap": True}, {})
    for arguments in ways:
        state: dict[str, Any] = torch.load(path, **arguments)
        model.load_state_dict(state)
        barrier.wait()
        # The first process looks at the GPU between these two.
        barrier.wait()


def used() -> float:
    """GiB of the first GPU that are in use."""
    free, whole = torch.cuda.mem_get_info(0)
    return (whole - free) / 2**30


def main() -> None:
    """Start the processes."""
    prefixes = tuple(options(__doc__))
    print(header("processes"), flush=True)
    context = processes.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/loaded.pt"
        for count in (1, 7) if OPTIONS.device == "cuda" else ():
            if not f"checkpoint-on-one-gpu-{count}".startswith(prefixes):
                continue
            torch.save(GPT().to(OPTIONS.device).state_dict(), path)
            torch.cuda.empty_cache()
            barrier, before = context.Barrier(count + 1), used()
            running = processes.spawn(loaded, (path, OPTIONS, barrier), count, join=False)
            for way in ("with map_location='cpu', mmap=True", "without map_location"):
                barrier.wait()
                print(f"# {count} more processes, {way}: {used() - before:.2f} GiB of the first GPU", flush=True)
                barrier.wait()
            while not running.join():
                pass
        for count in (2, 8):
            if f"unguarded-checkpoint-{count}".startswith(prefixes):
                processes.spawn(written, (folder, OPTIONS, context.Barrier(count), count), count)


if __name__ == "__main__":
    main()
