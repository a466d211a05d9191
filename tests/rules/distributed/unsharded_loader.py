"""Loaders of programs for several GPUs."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset


def train(model, dataset, rank: int):
    model = DDP(model.cuda(rank), device_ids=[rank])
    loader = DataLoader(dataset, 64, shuffle=True, num_workers=8, pin_memory=True)  # error: TPF929
    for x, y in loader:
        model(x.cuda(rank, non_blocking=True)).mean().backward()


def by_position(dataset):
    return DataLoader(dataset, 64, True)  # error: TPF929


def in_options(dataset):
    options = {"batch_size": 64, "shuffle": True, "num_workers": 4}
    return DataLoader(dataset, **options)  # error: TPF929


# Look-alikes


def in_order(dataset):
    return DataLoader(dataset, 64, num_workers=8)


def of_one_part(dataset, rank: int, world: int):
    part = Subset(dataset, range(rank, len(dataset), world))
    return DataLoader(part, 64, shuffle=True)


def as_asked(dataset, mixed: bool):
    return DataLoader(dataset, 64, shuffle=mixed)


def on_one_gpu(dataset, is_distributed: bool):
    if not is_distributed:
        return DataLoader(dataset, 64, shuffle=True)
    raise NotImplementedError


def of_shards(paths: list[str], shard: int):
    dataset = torch.load(paths[shard], weights_only=False)
    return DataLoader(dataset, 64, shuffle=True)
