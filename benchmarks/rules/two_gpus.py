"""What habits of programs with several processes cost on two GPUs of one host, a process for each.

Prints the rows of `perflint/rules/worth.toml`, or the peaks of memory of the first process.
Usage: python benchmarks/rules/two_gpus.py [--device cpu --quick] [--memory] [PREFIX …]  (rows whose name starts so)
Without two GPUs the processes talk through gloo, and share a GPU: the peaks stay the same, times do not.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from experts import small
from programs import GPT, ids, train
from timing import MEMORY_COLUMNS, OPTIONS, Options, Pair, Run, header, memory, options, row, synchronize
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DataParallel
from torch.nn.parallel import DistributedDataParallel as DDP

HALF = "bfloat16 autocast"
TRAINING = "GPT-2 of 124 M parameters, batch 8 of 1024 tokens on each of two GPUs, AdamW fused"
Make = Callable[[bool], Run]


def pair(
    name: str, rule: str, words: str, make: Callable[[bool], Run], shape: str = TRAINING, scope: str = "step"
) -> Pair:
    """A pair; `make(True)` is the bad one."""
    return Pair(name, rule, words, HALF, shape, lambda: (make(True), make(False)), scope)


def trained(model: nn.Module, end: Callable[[torch.Tensor], object] | None = None, dtype: Any = torch.bfloat16) -> Run:
    """A training step on tokens of this process."""
    batch = ids(8, 1024)
    return train(model, lambda: model(batch), dtype, end=None if end is None else lambda loss: end(loss.detach()))


def replicas() -> Iterator[Pair]:
    """Ways to train a copy of the model in each process."""

    def through_cpu(bad: bool) -> Run:
        return trained(DDP(small(), process_group=dist.new_group(backend="gloo") if bad else None))

    yield pair("gloo-for-gpus", "TPF930", "DDP over gloo against NCCL", through_cpu)

    def one_by_one(bad: bool) -> Run:
        model, batch = small(), ids(8, 1024)
        if not bad:
            return trained(DDP(model))

        def backward(loss: torch.Tensor) -> None:
            loss.backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= dist.get_world_size()

        return train(model, lambda: model(batch), backward=backward)

    yield pair("gradient-by-gradient", "TPF928", "all_reduce of each gradient against DDP", one_by_one)

    def threads(bad: bool) -> Run:
        if not bad:
            return trained(DDP(small()))
        if dist.get_rank():
            # The other process has both GPUs.
            return lambda: None
        model, batch = DataParallel(small()), torch.cat([ids(8, 1024), ids(8, 1024)])
        return train(model, lambda: model(batch).mean())

    yield pair("data-parallel", "TPF921", "DataParallel of both GPUs in one process against DDP", threads)

    def with_option(bad: bool, name: str, value: bool) -> Run:
        return trained(DDP(small(), **{name: value if bad else not value}))

    words = "DDP(find_unused_parameters=True) against False"
    make = partial(with_option, name="find_unused_parameters", value=True)
    yield pair("find-unused-parameters", "TPF922", words, make)
    words = "DDP(gradient_as_bucket_view=False) against True"
    make = partial(with_option, name="gradient_as_bucket_view", value=False)
    yield pair("gradients-held-twice", "TPF935", words, make)

    def compiled(bad: bool) -> Run:
        return trained(DDP(torch.compile(small())) if bad else torch.compile(DDP(small())))

    yield pair("compile-before-ddp", "TPF714", "DDP(torch.compile(model)) against torch.compile(DDP(model))", compiled)

    def accumulated(bad: bool) -> Run:
        model, batch = DDP(small()), ids(8, 1024)

        def losses() -> torch.Tensor:
            for _ in range(3):
                with contextlib.nullcontext() if bad else model.no_sync():
                    model(batch).backward()
            return model(batch)

        return train(model, losses)

    words = "four micro-steps that all reduce against no_sync() in three of them"
    yield pair("accumulation-without-no-sync", "TPF604", words, accumulated, f"{TRAINING}, four micro-steps")


def numbers() -> Iterator[Pair]:
    """Numbers that all processes share in each step."""

    def reduced(bad: bool) -> Run:
        def end(loss: torch.Tensor) -> None:
            each = [loss, loss * 2, loss * 3]
            for number in each if bad else [torch.stack(each)]:
                dist.all_reduce(number)

        return trained(DDP(small()), end)

    yield pair("collective-per-step", "TPF923", "three all_reduce of a number each against one", reduced)

    def gathered(bad: bool) -> Run:
        def end(loss: torch.Tensor) -> None:
            found = [torch.empty_like(loss) for _ in range(dist.get_world_size())]
            dist.all_gather(found, loss)
            torch.stack(found).mean().item()

        return trained(DDP(small()), end if bad else None)

    words = "the losses of all processes gathered, as accelerate does, and read in each step, against none"
    yield pair("gather-each-step", "TPF944", words, gathered)


def shards() -> Iterator[Pair]:
    """A model of which each process has a part."""

    def sharded(units: bool, **settings: Any) -> GPT:
        model = small()
        for block in model.blocks if units else ():
            fully_shard(block, **settings)
        return fully_shard(model, **settings)

    words = "fully_shard(model) alone against a unit for each block"
    yield pair("one-sharded-unit", "TPF931", words, lambda bad: trained(sharded(not bad)))

    def sent(bad: bool) -> Run:
        if bad:
            return trained(sharded(True))
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        return trained(sharded(True, mp_policy=policy), dtype=None)

    words = "parameters that are gathered in float32 under autocast against a policy of bfloat16"
    yield pair("sharded-in-float32", "TPF934", words, sent)


def turns(pair: Pair) -> list[tuple[float, float]]:
    """Seconds of both sides, by turns: as often in each process, and from when all begin until all end."""
    times, repeats = (1, 2) if OPTIONS.quick else (5, 5)
    sides = pair.make()

    def seconds(run: Run) -> float:
        synchronize()
        dist.barrier()
        start = time.perf_counter()
        for _ in range(times):
            run()
        synchronize()
        dist.barrier()
        return (time.perf_counter() - start) / times

    for _ in range(1 if OPTIONS.quick else 3):
        for run in sides:
            run()
    return [(seconds(sides[0]), seconds(sides[1])) for _ in range(repeats)]


def work(rank: int, folder: str, given: Options, prefixes: tuple[str, ...]) -> None:
    """One process: run the pairs, and print in the first."""
    OPTIONS.device, OPTIONS.quick, OPTIONS.memory = given.device, given.quick, given.memory
    if OPTIONS.device == "cuda":
        torch.cuda.set_device(rank % torch.cuda.device_count())
    backend = "nccl" if OPTIONS.device == "cuda" and torch.cuda.device_count() > 1 else "gloo"
    dist.init_process_group(backend, f"file://{folder}/store", rank=rank, world_size=2)
    for pair in (*replicas(), *numbers(), *shards()):
        if not pair.name.startswith(prefixes):
            continue
        torch.manual_seed(0)
        found = memory(pair) if OPTIONS.memory else row(pair, "two_gpus", turns(pair))
        if rank == 0:
            print(found, flush=True)
    dist.destroy_process_group()


def main() -> None:
    """Start both processes."""
    prefixes = tuple(options(__doc__))
    print(MEMORY_COLUMNS if OPTIONS.memory else header("two_gpus"), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (folder, OPTIONS, prefixes), 2)


if __name__ == "__main__":
    main()
