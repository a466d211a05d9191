"""Process groups of the gloo backend."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def setup(model, rank: int, world: int):
    dist.init_process_group("gloo", rank=rank, world_size=world)  # error: TPF930
    torch.cuda.set_device(rank)
    return DDP(model.cuda(rank), device_ids=[rank])


BACKEND = "gloo"


def by_keyword():
    dist.init_process_group(backend=BACKEND, init_method="env://")  # error: TPF930


if __name__ == "__main__":
    dist.init_process_group(init_method="env://", backend="gloo")  # error: TPF930


def by_default_of_a_parameter(rank: int, backend: str = "gloo"):
    dist.init_process_group(backend, rank=rank)  # error: TPF930


# Look-alikes


def by_default():
    dist.init_process_group()


def as_configured():
    dist.init_process_group(os.environ["BACKEND"])


def on_the_cpu():
    if not torch.cuda.is_available():
        dist.init_process_group("gloo")


def of_both():
    dist.init_process_group("cpu:gloo,cuda:other")


def second_group():
    return dist.new_group(backend="gloo")


def another(library):
    library.init_process_group("gloo")
