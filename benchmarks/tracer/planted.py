"""Programs with planted syncs. Each planted line says `# plant: NAME`.

    python planted.py CASE [--steps N] [--truth FILE [--rounds N]]

Runs steps with all plants, which may be traced. Then, with `--truth`, it runs blocks of steps with and
without the plants by turns, and writes milliseconds per step: what the plants really cost. perflint has
no part in that: by then it has let go.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from common import ROOT, SMALL, alone
from torch import Tensor

sys.path.append(str(ROOT / "benchmarks" / "rules"))

from programs import GPT
from programs import host_work as work

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BIG = 4096 if DEVICE == "cuda" else 64
NOTHING: frozenset[str] = frozenset()
Step = Callable[[frozenset[str]], None]
"""Runs a step, with the plants that are named."""


def main() -> None:
    """Run a case."""
    parser = argparse.ArgumentParser(description="run programs with planted syncs")
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--truth", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.manual_seed(0)
    make, plants = CASES[options.case]
    step, optimizer = make(), pacemaker()
    with alone():
        for _ in range(options.steps):
            step(frozenset(plants))
            optimizer.step()
        if options.truth:
            options.truth.write_text(json.dumps(truth(step, plants, options.rounds)))


def truth(step: Step, plants: tuple[str, ...], rounds: int) -> dict[str, list[float]]:
    """Milliseconds per step, by what is planted: all, none, and all but one; one number a round."""
    variants = {"all": frozenset(plants), "none": NOTHING}
    if len(plants) > 1:
        variants |= {f"without {plant}": frozenset(plants) - {plant} for plant in plants}
    found: dict[str, list[float]] = {variant: [] for variant in variants}
    for turn in range(rounds):
        # There and back again, so that no variant always follows the same one.
        for variant in sorted(variants, reverse=bool(turn % 2)):
            found[variant].append(block(step, variants[variant]))
    return found


def block(step: Step, plants: frozenset[str], seconds: float = 0.35, skip: int = 6) -> float:
    """Milliseconds of a step on the clock of the GPU, after the first ones."""
    optimizer = pacemaker()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if DEVICE == "cuda" else []
    began = 0.0
    count = -skip
    while count < 10 or time.perf_counter() - began < seconds:
        if not count:
            began = time.perf_counter()
            for mark in marks[:1]:
                mark.record()
        step(plants)
        optimizer.step()
        count += 1
    if not marks:
        return (time.perf_counter() - began) * 1000 / count
    marks[1].record()
    torch.cuda.synchronize()
    return marks[0].elapsed_time(marks[1]) / count


def pacemaker() -> torch.optim.Optimizer:
    """An optimizer with nothing to do, which tells the steps."""
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, device=DEVICE))], lr=0.1)


def products(x: Tensor, count: int) -> Tensor:
    """Keep the GPU busy: a product takes some 2.7 ms on an H200."""
    z = x
    for _ in range(count):
        z = z @ x * 1e-2
    return z


def end_of_step(ms: float) -> Step:
    """The loss is read before other work of the host."""
    x = torch.randn(BIG, BIG, device=DEVICE)

    def step(plants: frozenset[str]) -> None:
        z = products(x, 6)
        if "item" in plants:
            z[0, 0].item()  # plant: item
        work(ms)

    return step


def gpt(sizes_are_small: bool, batch: int) -> tuple[Callable[[], Tensor], Callable[[Tensor], None]]:
    """A forward pass, and the rest of the step."""
    model = GPT(**(SMALL if sizes_are_small else {})).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=DEVICE == "cuda")
    time_ = 128 if sizes_are_small else 1024 if DEVICE == "cuda" else 8
    tokens = torch.randint(0, 512, (batch, time_), device=DEVICE)

    def forward() -> Tensor:
        with torch.autocast(DEVICE, torch.bfloat16, enabled=not sizes_are_small):
            loss: Tensor = model(tokens)
        return loss

    def rest(loss: Tensor) -> None:
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return forward, rest


def between_passes() -> Step:
    """A loss is looked at before the backward pass, in the training of a GPT that fills the GPU."""
    forward, rest = gpt(False, 8)

    def step(plants: frozenset[str]) -> None:
        loss = forward()
        if "isnan" in plants:
            bool(loss.isnan())  # plant: isnan
        rest(loss)

    return step


def launch_bound() -> Step:
    """Eighty numbers are read in a step of small kernels, where the GPU waits for the host anyhow."""
    x = torch.randn(64, 64, device=DEVICE)
    number = torch.zeros((), device=DEVICE)

    def step(plants: frozenset[str]) -> None:
        z = x
        for _ in range(80):
            for _ in range(2):
                z = z * 1.01 - 0.01
            if "item" in plants:
                number.item()  # plant: item

    return step


def decode() -> Step:
    """A token after the other, with a look at each whether it ends the text: the GPU waits for the host anyhow."""
    layers = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True) for _ in range(6))
    layers = layers.to(DEVICE).eval()
    head = torch.nn.Linear(256, 1000).to(DEVICE)
    start = torch.randn(1, 16, 256, device=DEVICE)

    @torch.inference_mode()
    def step(plants: frozenset[str]) -> None:
        x = start
        for _ in range(4):
            for layer in layers:
                x = layer(x)
            token = head(x[:, -1]).argmax(-1)
            if "eos" in plants and token == -1:  # plant: eos
                break

    return step


def then_launches() -> Step:
    """What follows a sync is many small kernels, which the host could have queued meanwhile."""
    x = torch.randn(BIG, BIG, device=DEVICE)
    y = torch.randn(64, 64, device=DEVICE)

    def step(plants: frozenset[str]) -> None:
        z = products(x, 3)
        if "item" in plants:
            z[0, 0].item()  # plant: item
        small = y
        for _ in range(400):
            small = small * 1.01

    return step


def several() -> Step:
    """Three syncs in a step, each before CPU work of its own."""
    x = torch.randn(BIG, BIG, device=DEVICE)

    def step(plants: frozenset[str]) -> None:
        z = products(x, 2)
        if "first" in plants:
            z[0, 0].item()  # plant: first
        work(1)
        z = products(x, 2)
        if "second" in plants:
            z[0, 1].item()  # plant: second
        work(2)
        z = products(x, 2)
        if "third" in plants:
            z[0, 2].item()  # plant: third
        work(3)

    return step


def adjacent() -> Step:
    """Two numbers are read one after the other: one sync less changes little, both less does."""
    x = torch.randn(BIG, BIG, device=DEVICE)

    def step(plants: frozenset[str]) -> None:
        z = products(x, 4)
        if "first" in plants:
            z[0, 0].item()  # plant: first
        if "second" in plants:
            z[0, 1].item()  # plant: second
        work(3)

    return step


def explicit() -> Step:
    """The device, and the stream, are waited for by name."""
    x = torch.randn(BIG, BIG, device=DEVICE)

    def step(plants: frozenset[str]) -> None:
        products(x, 3)
        if "device" in plants:
            torch.cuda.synchronize()  # plant: device
        work(2)
        products(x, 3)
        if "stream" in plants:
            torch.cuda.current_stream().synchronize()  # plant: stream
        work(3)

    return step


def empty_cache() -> Step:
    """Memory goes back to the driver in each step and is asked for anew."""
    x = torch.randn(BIG, BIG, device=DEVICE)

    def step(plants: frozenset[str]) -> None:
        products(x, 4)
        if "free" in plants:
            torch.cuda.empty_cache()  # plant: free
        work(2)

    return step


def blocking_copy() -> Step:
    """A batch is copied from pinned and, with the plant, from pageable memory, behind a queue of work."""
    x = torch.randn(BIG, BIG, device=DEVICE)
    batch = torch.randn(1 << 16)
    pinned = batch.pin_memory() if DEVICE == "cuda" else batch

    def step(plants: frozenset[str]) -> None:
        y = pinned.to(DEVICE, non_blocking=True)
        if "copy" in plants:
            y = batch.to(DEVICE)  # plant: copy
        work(3)
        products(x, 4)[0].add_(y[:BIG])

    return step


def side_stream() -> Step:
    """The result of another stream is read while the main one has work for long."""
    x = torch.randn(BIG, BIG, device=DEVICE)
    flag = torch.zeros((), device=DEVICE)
    side = torch.cuda.Stream()

    def step(plants: frozenset[str]) -> None:
        products(x, 6)
        if "flag" in plants:
            with torch.cuda.stream(side):
                flag.item()  # plant: flag
        work(3)

    return step


def step_before() -> Step:
    """The CPU waits for the previous step while this one is queued."""
    x = torch.randn(BIG, BIG, device=DEVICE)
    events = [torch.cuda.Event() for _ in range(2)]
    count = 0

    def step(plants: frozenset[str]) -> None:
        nonlocal count
        products(x, 6)
        events[count % 2].record()
        count += 1
        if "before" in plants:
            events[count % 2].synchronize()  # plant: before
        work(3)

    return step


def slow_host() -> Step:
    """A sync where the GPU has long done its work: the host is the bottleneck with or without it."""
    x = torch.randn(1024, 1024, device=DEVICE)

    def step(plants: frozenset[str]) -> None:
        z = products(x, 4)
        work(8)
        if "late" in plants:
            z[0, 0].item()  # plant: late

    return step


CASES: dict[str, tuple[Callable[[], Step], tuple[str, ...]]] = {
    "end-3ms": (lambda: end_of_step(3), ("item",)),
    "end-10ms": (lambda: end_of_step(10), ("item",)),
    "between-passes": (between_passes, ("isnan",)),
    "then-launches": (then_launches, ("item",)),
    "several": (several, ("first", "second", "third")),
    "adjacent": (adjacent, ("first", "second")),
    "explicit": (explicit, ("device", "stream")),
    "empty-cache": (empty_cache, ("free",)),
    "blocking-copy": (blocking_copy, ("copy",)),
    "launch-bound": (launch_bound, ("item",)),
    "decode": (decode, ("eos",)),
    "side-stream": (side_stream, ("flag",)),
    "step-before": (step_before, ("before",)),
    "slow-host": (slow_host, ("late",)),
}
"""By name: what makes the step, and its plants."""
NO_EFFECT = ("side-stream", "step-before", "slow-host")
"""Cases whose plants change nothing."""


if __name__ == "__main__":
    main()
