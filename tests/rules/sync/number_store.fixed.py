import numpy as np
import torch
from torch import nn


class Affine(nn.Module):
    def forward(self, x: torch.Tensor, angle: float, indices: torch.Tensor):
        matrix = torch.eye(3, device=x.device)
        matrix[0, 2:3] = angle
        matrix[1, 2:3] = -angle * 2
        row = torch.arange(3, device="cuda")
        row[0:1] = 1
        order = x.argsort(dim=0)
        x[order] = 0
        x[order[:, 0], 1] = 0.5
        x[0, 1, 2:3] = True
        return matrix, row, x


def perhaps(x: torch.Tensor):
    x[0, 1:2] = 1.0
    return x


# Look-alikes.


class Slices(nn.Module):
    def forward(self, x: torch.Tensor):
        x[:, 0] = 1.0
        x[..., 0, 1] = 2.0
        x[2:4] = 0
        x[:] = 1
        x[None] = 2
        return x


class Masks(nn.Module):
    def forward(self, x: torch.Tensor):
        x[x > 0] = 0.0
        x[0] = x[1]
        return x


class Rows(nn.Module):
    def forward(self, x: torch.Tensor):
        table = torch.zeros(3, 4, device=x.device)
        table[0] = 1.0
        table[0, 1] += 1.0
        table[1, 2].fill_(3.0)
        return table


def on_host():
    table = torch.zeros(3, 4)
    table[0, 1] = 1.0
    table[torch.tensor([0, 1])] = 2.0
    return table


def arrays(values: np.ndarray):
    values[0, 1] = 1.0
    return values


def lists(values: list[float], table: dict[int, float]):
    values[0] = 1.0
    table[3] = 2.0
    return values, table


def unknown(values):
    values[0] = 1.0
    values[0, 1] = 1.0
    return values


class Exported(nn.Module):
    """`x[i, None] = number` would be lost in `torch.onnx.export`."""

    def forward(self, x: torch.Tensor, scale: float) -> torch.Tensor:
        sizes = torch.zeros(2, 2, device=x.device)
        for i in range(2):
            sizes[i, 0:1] = x.shape[i]
            sizes[-1:, i] = scale
            sizes[i, i] = 2 * scale
            sizes[i, i].fill_(2 * i)
            sizes[i, i - 1] = float(scale)
        sizes[-2, -1:] = scale
        return x * sizes


class Queue(nn.Module):
    """The place behind the last key of a ring."""

    def __init__(self, width, size):
        super().__init__()
        self.size = size
        self.register_buffer("keys", torch.randn(width, size))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))
        self.register_buffer("places", torch.zeros(2, 2, dtype=torch.long))

    def forward(self, keys, step, offset):
        count, start = keys.shape[0], len(step)
        self.keys[:, start : start + count] = keys.t()
        self.place[0:1] = (start + count) % self.size
        self.places[0] = (start + count) % self.size
        self.place[0] = offset % self.size
        self.place[0] = (start + count) * self.size
        self.place[:1] = (start + count) % self.size
        self.place[0] = (start + count) % step.sum(dim=0)
        return keys


class UnknownIndices(nn.Module):
    """A name tells positions from a mask."""

    def forward(self, x: torch.Tensor, index: torch.Tensor, keep: torch.Tensor, i: int):
        x[:, index] = 0
        x[index, i] = 1.0
        x[:, keep] = 0
        x[index] = x.mean()
        return x
