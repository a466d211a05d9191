"""Distances of all pairs, and differences that are something else."""

import torch
from torch import nn


class Nearest(nn.Module):
    def __init__(self, codes: int, width: int):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(codes, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.norm(x[:, None] - self.codes[None], dim=-1).argmin(1)  # error: TPF310


class Soft(nn.Module):
    def __init__(self, codes: int, width: int):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(codes, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        apart = x.unsqueeze(1) - self.codes
        return (-apart.pow(2).sum(-1)).softmax(1)  # error: TPF310


def contrastive(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return ((x[:, None, :] - y[None, :, :]) ** 2).sum(dim=2).mean()  # error: TPF310


def one_norm(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.sum(torch.abs(x.unsqueeze(1) - y.unsqueeze(0)), dim=-1)  # error: TPF310


def plain(pts1, pts2):
    return torch.norm(pts1[:, None] - pts2, dim=2, p=2)  # audit: TPF310


def by_cdist(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cdist(x, y)


def of_pairs(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x - y).norm(dim=-1)


def to_one_target(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (x.unsqueeze(0) - target).norm(dim=-1)


def directions(x: torch.Tensor) -> torch.Tensor:
    apart = x[:, None] - x[None]
    return apart / apart.norm(dim=-1, keepdim=True)


def over_pairs(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x[:, None] - y[None]).pow(2).sum(1)


def alike(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x[:, None] - y[:, None]).pow(2).sum(-1)


def centred(x: torch.Tensor) -> torch.Tensor:
    return (x.unsqueeze(1) - x.mean(0, keepdim=True)).abs().sum(-1)


def of_space(positions: torch.Tensor, reach: float) -> torch.Tensor:
    return (positions.unsqueeze(1) - positions.unsqueeze(0)).norm(dim=-1) < reach  # audit: TPF310
