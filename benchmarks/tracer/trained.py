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

from programs import GPT

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def resnet50(dtype: torch.dtype) -> Callable[[], None]:
    """A step of ResNet-50 with 64 images."""
    import torchvision

    model = torchvision.models.resnet50().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batch, size = (64, 224) if DEVICE == "cuda" else (2, 64)
    images = torch.randn(batch, 3, size, size, device=DEVICE)
    labels = torch.randint(0, 1000, (batch,), device=DEVICE)

    def step() -> None:
        with torch.autocast(DEVICE, dtype, enabled=dtype != torch.float32):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def gpt(sizes: dict[str, int], batch: int, time_: int, reads: bool = False) -> Callable[[], None]:
    """A step of a GPT; with `reads` its loss is read."""
    model = GPT(**sizes).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=DEVICE == "cuda")
    tokens = torch.randint(0, 512, (batch, time_ if DEVICE == "cuda" else 8), device=DEVICE)

    def step() -> None:
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = model(tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if reads:
            loss.item()

    return step


MODELS: dict[str, Callable[[], Callable[[], None]]] = {
    "resnet50": lambda: resnet50(torch.float32),
    "resnet50-bf16": lambda: resnet50(torch.bfloat16),
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
