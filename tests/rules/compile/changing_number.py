"""Compiled code and the numbers that it gets."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


@torch.compile(dynamic=False)
def mix(a: torch.Tensor, b: torch.Tensor, weight: float) -> torch.Tensor:
    return a * (1 - weight) + b * weight


@torch.compile
def mix_any(a: torch.Tensor, b: torch.Tensor, weight: float) -> torch.Tensor:
    return a * (1 - weight) + b * weight


def average(a: torch.Tensor, b: torch.Tensor, steps: int):
    for step in range(steps):
        a = mix(a, b, 1.0 / (step + 1))  # error: TPF717
    return a


def counted(model: nn.Module, x: torch.Tensor):
    fast = torch.compile(model.cuda(), dynamic=False)
    at = 0
    while at < 100:
        x = fast(x, at)  # error: TPF717
        at += 1
    return x


def collate(items):
    return pad_sequence(items, batch_first=True)


def padded(model: nn.Module, dataset):
    fast = torch.compile(model.cuda(), dynamic=False)  # error: TPF717
    for x in DataLoader(dataset, 32, collate_fn=collate):
        fast(x.cuda())


# Look-alikes


def by_default(a: torch.Tensor, b: torch.Tensor, steps: int):
    for step in range(steps):
        a = mix_any(a, b, 1.0 / (step + 1))
    return a


def the_same(a: torch.Tensor, b: torch.Tensor, steps: int):
    for _ in range(steps):
        a = mix(a, b, 0.5)
    return a


def once(a: torch.Tensor, b: torch.Tensor, weight: float):
    return mix(a, b, weight)


def tensors(a: torch.Tensor, others: list[torch.Tensor]):
    for b in others:
        a = mix(a, b, 0.5)
    return a


def padded_with_any_length(model: nn.Module, dataset):
    fast = torch.compile(model.cuda())
    for x in DataLoader(dataset, 32, collate_fn=collate):
        fast(x.cuda())


def collate_to_buckets(items):
    ids = pad_sequence(items, batch_first=True)
    return nn.functional.pad(ids, (0, -ids.shape[1] % 128))


def padded_to_buckets(model: nn.Module, dataset):
    fast = torch.compile(model.cuda(), dynamic=False)
    for x in DataLoader(dataset, 32, collate_fn=collate_to_buckets):
        fast(x.cuda())


@torch.compile
def attend(x: torch.Tensor, history: list[torch.Tensor]) -> torch.Tensor:
    keys = torch.stack(history, dim=1)
    return x + keys.mean(1)


class Memory:
    def __init__(self) -> None:
        self.history: list[torch.Tensor] = []

    def roll(self, x: torch.Tensor, steps: int) -> torch.Tensor:
        for _ in range(steps):
            self.history.append(x)
            x = attend(x, self.history)  # error: TPF717
        return x

    def roll_the_last(self, x: torch.Tensor, steps: int) -> torch.Tensor:
        kept = [x]
        for _ in range(steps):
            kept.append(x)
            del kept[0]
            x = attend(x, kept)
        return x

    def roll_anew(self, xs: list[torch.Tensor]) -> list[torch.Tensor]:
        out = []
        for x in xs:
            kept = []
            for _ in range(4):
                kept.append(x)
                x = attend(x, kept)
            out.append(x)
        return out


def eagerly(x: torch.Tensor, steps: int) -> torch.Tensor:
    kept = []
    for _ in range(steps):
        kept.append(x)
        x = x + torch.stack(kept).mean(0)
    return x
