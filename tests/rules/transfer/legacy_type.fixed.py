"""Types of old, and dtypes."""

import torch
from torch import nn
from torch.utils.data import DataLoader


class Loss(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(x, y.long().to(x.device))


def masks(model: nn.Module, loader: DataLoader) -> None:
    for x in loader:
        x = x.cuda()
        mask = (model(x) > 0).type("torch.FloatTensor")
        (x * mask.cuda()).sum().backward()


class Counts(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.argmax(-1).int()


def made() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.cuda.FloatTensor(16, 3).normal_(), torch.cuda.HalfTensor()


def only_casts(x: torch.Tensor) -> torch.Tensor:
    return x.type(torch.int64) + x.type(torch.float32).long()


def on_the_host() -> torch.Tensor:
    return torch.zeros(3).type(torch.LongTensor)


def to_the_device(x: torch.Tensor) -> torch.Tensor:
    return x.type(torch.cuda.FloatTensor)


def made_on_the_host() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.FloatTensor(3, 4), torch.LongTensor([1, 2])


def what_type(x: torch.Tensor) -> str:
    return x.type()


def of_another_kind(token, kinds) -> bool:
    return token.type(kinds.LongTensor)
