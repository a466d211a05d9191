"""Numbers that are stored to what is a tensor, an array, or something else."""

import numpy as np
import torch
from torch import nn


class Corner(nn.Module):
    def forward(self, x):
        x[0, 1, 2] = 2.5
        return x


def case_tensor():
    return {"x": Corner()(torch.zeros(1, 2, 3, device="cuda"))}


def case_array():
    return {"x": Corner()(np.zeros((1, 2, 3))).tolist()}


class Grid:
    """An object of its own that is indexed as tensors are."""

    def __init__(self) -> None:
        self.values = [[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]]

    def __setitem__(self, place, value) -> None:
        i, j, k = place
        self.values[i][j][k] = value


def case_grid():
    return {"x": Corner()(Grid()).values}


def change_grid(error):
    """a list or an object of your own class may not accept the index"""
    assert error[0] is None and error[1].startswith("TypeError")


def outside(x: torch.Tensor):
    x[0, 3] = 1.0
    return x


def case_outside():
    return {"x": outside(torch.zeros(2, 3, device="cuda"))}


def change_outside(error):
    """a position outside of the tensor raises no error any more"""
    assert error[0].startswith("IndexError") and error[1] is None


def on_the_diagonal(x: torch.Tensor, number: float):
    for i in range(2):
        x[i, i] = number
    return x


def case_filled():
    return {"x": on_the_diagonal(torch.zeros(2, 2, device="cuda"), 0.1)}
