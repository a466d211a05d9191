"""Numbers that are stored to what is a tensor, or an array."""

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


def change_array(error):
    """an array's element has no `fill_`"""
    assert error[0] is None and "has no attribute 'fill_'" in error[1]
