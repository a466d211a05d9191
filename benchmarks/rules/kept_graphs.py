"""How much memory a process keeps for each step whose loss is added with its graph (TPF210).

Prints the MiB by which the memory of the CPU and of the GPU grows with each step, and the time to drop the sum.
Usage: python benchmarks/rules/kept_graphs.py [--device cpu --quick]
"""

from __future__ import annotations

import gc
import time
from pathlib import Path

import torch
from programs import GPT, Hook, ids, images, resnet50, train
from timing import OPTIONS, Run, options, synchronize
from torch.nn import functional as F


def resident() -> float:
    """The memory of the process on the CPU, in MiB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def allocated() -> float:
    """The memory of tensors on the GPU, in MiB."""
    return torch.cuda.memory_allocated() / 2**20 if OPTIONS.device == "cuda" else 0.0


class Sum:
    """The sum of the losses of a training."""

    def __init__(self, detached: bool) -> None:
        self.detached, self.total = detached, torch.zeros((), device=OPTIONS.device)

    def add(self, loss: torch.Tensor) -> None:
        """Add the loss of a step."""
        self.total += loss.detach() if self.detached else loss


def gpt(end: Hook) -> Run:
    """A training step of GPT-2."""
    model, batch = GPT().to(OPTIONS.device), ids(8, 1024)
    return train(model, lambda: model(batch), end=end)


def resnet(end: Hook) -> Run:
    """A training step of ResNet-50."""
    model, batch = resnet50(), images(32)
    targets = torch.randint(0, 1000, (len(batch),), device=OPTIONS.device)
    return train(model, lambda: F.cross_entropy(model(batch), targets), end=end)


def main() -> None:
    """Print a line for each program."""
    options(__doc__)
    steps, warm = (20, 5) if OPTIONS.quick else (400, 50)
    print("torch", torch.__version__, OPTIONS.device)
    print("| program | sum | MiB a step, CPU | MiB a step, GPU | ms to drop the sum |\n|---|---|---:|---:|---:|")
    programs = (("GPT-2 of 124 M parameters, batch 8 of 1024 tokens", gpt), ("ResNet-50, batch 32", resnet))
    for name, make in programs:
        for detached in (True, False):
            kept = Sum(detached)
            step = make(kept.add)
            for _ in range(warm):
                step()
            synchronize()
            gc.collect()
            before = resident(), allocated()
            for _ in range(steps):
                step()
            synchronize()
            on_cpu, on_gpu = (resident() - before[0]) / steps, (allocated() - before[1]) / steps
            start = time.perf_counter()
            del kept.total
            took = (time.perf_counter() - start) * 1e3
            print(
                f"| {name} | {'detached' if detached else 'kept'} | {on_cpu:.3f} | {on_gpu:.3f} | {took:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
