"""Batches in memory that is pinned and that is not."""

import torch
from torch.utils.data import DataLoader


class Pair:
    def __init__(self, items):
        self.x = torch.stack(items)


def case_batches():
    pinned, sums = [], []
    for x in DataLoader(torch.arange(6.0).reshape(3, 2), 2):
        pinned.append(x.is_pinned())
        sums.append(x.cuda().sum())
    return {"pinned": pinned, "sums": sums}


def change_batches(pinned):
    """into pages that the system cannot swap"""
    assert pinned == ([False, False], [True, True])


def case_of_ones_own():
    pinned, sums = [], []
    loader = DataLoader(torch.arange(6.0).reshape(3, 2), 2, collate_fn=Pair)
    for batch in loader:
        pinned.append(batch.x.is_pinned())
        sums.append(batch.x.cuda().sum())
    return {"pinned": pinned, "sums": sums}
