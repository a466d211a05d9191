"""Trains a model with random data and times its own steps.

    python trained.py MODEL --times FILE [--steps N]

Written is the time of each step in milliseconds, on the clock of the GPU: between events that are
recorded where steps begin, and read after the last one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch
from common import ROOT, SMALL, alone

sys.path.append(str(ROOT / "benchmarks" / "rules"))

from programs import GPT, gpt_step, ids, images, resnet50, resnet_step
from timing import OPTIONS

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
OPTIONS.device, OPTIONS.quick = DEVICE, DEVICE == "cpu"


def resnet(dtype: torch.dtype | None) -> Callable[[], object]:
    """A step of ResNet-50 with 64 images."""
    batch = images(64)
    return resnet_step(resnet50(), lambda: batch, dtype, False)


def gpt(sizes: dict[str, int], batch: int, tokens: int, reads: bool = False) -> Callable[[], object]:
    """A step of a GPT; with `reads` its loss is read."""
    return gpt_step(GPT(**sizes).to(DEVICE), ids(batch, tokens, 512), end=torch.Tensor.item if reads else None)


MODELS: dict[str, Callable[[], Callable[[], object]]] = {
    "resnet50": lambda: resnet(None),
    "resnet50-bf16": lambda: resnet(torch.bfloat16),
    "gpt-124m": lambda: gpt({}, 8, 1024),
    "gpt-124m-item": lambda: gpt({}, 8, 1024, reads=True),
    "gpt-small": lambda: gpt(SMALL, 4, 128),
}
"""By name, what makes a step. `gpt-small` is bound by launches: the GPU waits for the host all the time."""


def main() -> None:
    """Train, and write the times."""
    parser = argparse.ArgumentParser(description="train a model and time its steps")
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--times", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    torch.manual_seed(0)
    step = MODELS[options.model]()
    on_gpu = DEVICE == "cuda"
    events = [torch.cuda.Event(enable_timing=True) for _ in range(options.steps + 1)] if on_gpu else []
    clock = []
    with alone():
        for number in range(options.steps + 1):
            clock.append(time.perf_counter() * 1000)
            for event in events[number : number + 1]:
                event.record()
            if number < options.steps:
                step()
        if on_gpu:
            torch.cuda.synchronize()
    times = [left.elapsed_time(right) for left, right in pairwise(events)]
    options.times.write_text(json.dumps(times or [right - left for left, right in pairwise(clock)]))


if __name__ == "__main__":
    main()
