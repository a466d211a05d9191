import numpy as np
import torch
from torch import nn


class Solver(nn.Module):
    def forward(self, x: torch.Tensor):
        for _ in range(10):
            new = torch.sigmoid(x)
            if torch.allclose(x, new):  # error: TPF121
                break
            if new.equal(x):  # error: TPF121
                break
            x = new
        return x


def library(a: torch.Tensor, b: torch.Tensor):
    return torch.equal(a, b)  # audit: TPF121


class Kernel(nn.Module):
    def forward(self, x1, x2):
        return torch.equal(x1, x2), x1.shape, x2.shape  # audit: TPF121


def truth(a: torch.Tensor):
    return torch.is_nonzero(a.sum()) or a.sum().is_nonzero()  # error: TPF121, TPF121


def unknown(operator, x):
    assert torch.allclose(operator(2 * x), 2 * operator(x))  # audit: TPF121
    return torch.equal(operator(x), operator(2 * x))


# Look-alikes.


class OnDevice(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor):
        return torch.isclose(x, y), (x == y).all(), x.eq(y)


class Shapes(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor):
        return x.shape == y.shape, x.dtype == y.dtype, x is y


def on_host():
    a, b = torch.zeros(3), torch.ones(3)
    return torch.equal(a, b), a.allclose(b)


def with_host_tensor(a: torch.Tensor):
    return torch.equal(a.cpu(), torch.zeros(3))


def arrays(a: np.ndarray, b: np.ndarray):
    return np.allclose(a, b), np.array_equal(a, b)


class Table:
    def equal(self, other):
        return self is other


def a_method_of_the_same_name(table: Table):
    return table.equal(table)


class Settles(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, other: torch.Tensor):
        x = self.layer(x)
        return x if torch.equal(x, other) else other  # error: TPF121
