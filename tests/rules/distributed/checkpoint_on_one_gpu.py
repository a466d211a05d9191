"""Checkpoints of programs for several GPUs."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def build(model, path: str, rank: int):
    torch.cuda.set_device(rank)
    model.load_state_dict(torch.load(path))  # audit: TPF933
    return DDP(model.cuda(rank), device_ids=[rank])


def resume(model, optimizer, path: str):
    checkpoint = torch.load(path, weights_only=True)  # audit: TPF933
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])


class Trainer:
    def load(self, path: str):
        state = torch.load(f"{path}/model.pt")  # audit: TPF933
        self.model.load_state_dict(state, strict=False)


# Look-alikes


def to_the_cpu(model, path: str):
    model.load_state_dict(torch.load(path, map_location="cpu"))


def to_its_own(model, path: str, rank: int):
    state = torch.load(path, {"cuda:0": f"cuda:{rank}"})
    model.load_state_dict(state)


def on_the_first(model, path: str, rank: int):
    if rank == 0:
        model.load_state_dict(torch.load(path))


def of_data(path: str):
    return torch.load(path)


def of_another_state(model, state, path: str):
    data = torch.load(path)
    model.load_state_dict(state)
    return data
