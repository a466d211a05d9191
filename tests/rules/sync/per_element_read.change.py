"""Losses that are read one by one, and together."""

import torch


def read(batches):
    losses = [x.cuda().sum() for x in batches]
    return [loss.item() for loss in losses]


def case_alike():
    return {"numbers": read([torch.tensor([0.1, 0.2]), torch.tensor([0.3])])}


def case_none():
    return {"numbers": read([])}


def case_mixed():
    return {"numbers": read([torch.tensor([0.5]), torch.tensor([2**24 + 1])])}


def change_mixed(numbers):
    """elements of different dtypes or devices are brought to one dtype or raise"""
    assert numbers == ([0.5, 2**24 + 1], [0.5, float(2**24)])
