"""Numbers that are written through a mask of which nobody knows what it holds."""

import torch


def fill(x: torch.Tensor, where: torch.Tensor):
    x = x.cuda()
    x[torch.where(where.cuda())] = 0.5
    return x


def case_mask():
    return {"x": fill(torch.zeros(4), torch.tensor([True, False, False, True]))}


def case_whole_numbers():
    return {"x": fill(torch.zeros(4), torch.tensor([1, 0, 0, 3])).tolist()}


def change_whole_numbers(x):
    """an integer `m` would be taken as positions"""
    assert x == ([0.5, 0, 0, 0.5], [0.5, 0.5, 0, 0.5])
