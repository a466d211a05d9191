"""Loops over rows: those that could be one operation, and those that could not."""

import torch
from torch import nn


class Normalise(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] / x[i].norm()  # audit: TPF208
        return out


class Columns(nn.Module):
    def forward(self, x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for column in range(x.size(1)):
            scaled = x[:, column] * weights[column]
            out[:, column] = torch.relu(x[:, column] + scaled)  # audit: TPF208
        return out


class Distances(nn.Module):
    def forward(self, x: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
        distances = x.new_zeros(x.shape[0], centers.shape[0])
        for k in range(len(centers)):
            distances[:, k] = (x - centers[k]).square().sum(-1)  # audit: TPF208
        return distances


class Recurrence(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for i in range(1, x.shape[0]):
            out[i] = out[i - 1] * 0.9 + x[i]
        return out


class Carried(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros_like(x[0])
        out = torch.zeros_like(x)
        for i in range(x.shape[0]):
            state = state * 0.9 + x[i]
            out[i] = state
        return out


class Layers(nn.Module):
    def __init__(self, heads: nn.ModuleList):
        super().__init__()
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for i in range(len(self.heads)):
            out[i] = self.heads[i](x[i])
        return out


def on_the_host(rows: list[list[int]]) -> torch.Tensor:
    table = torch.zeros(len(rows), 4)
    wanted = torch.ones(len(rows), 4)
    for i in range(len(rows)):
        table[i] = wanted[i] * 2
    return table


class FilledFromLists(nn.Module):
    def forward(self, x: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        mask = torch.zeros_like(x)
        for i in range(len(lengths)):
            mask[i, : lengths[i]] = 1
        return mask


class Unknown(nn.Module):
    def forward(self, x: torch.Tensor, solve) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = solve(x[i])
        return out
