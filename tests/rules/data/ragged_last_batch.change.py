"""Loaders with the last batch and without."""

import torch
from torch.utils.data import DataLoader

MODE = "reduce-overhead"


def case_sizes():
    sizes, seen = [], set()
    for x in DataLoader(torch.arange(10), batch_size=4, shuffle=True):
        sizes.append(len(x))
        seen.update(x.tolist())
    return {"sizes": sizes, "seen": len(seen)}


def change_sizes(sizes, seen):
    """up to `batch_size - 1` items are left out in each epoch"""
    assert sizes == ([4, 4, 2], [4, 4]) and seen == (10, 8)


def case_left_out():
    loader = DataLoader(torch.arange(10), batch_size=4, shuffle=True)
    left = []
    for epoch in range(2):
        missing = set(range(10))
        for x in loader:
            missing.difference_update(x.tolist())
        left.append(sorted(missing))
    return {"left": left}


def change_left_out(left):
    """different ones each time"""
    assert left[0] == [[], []] and [len(one) for one in left[1]] == [2, 2] and left[1][0] != left[1][1]


def case_small():
    found = []
    for x in DataLoader(torch.arange(3), batch_size=4, shuffle=True):
        found.append(len(x))
    return {"found": found}


def change_small(found):
    """a data set smaller than a batch has no batches at all"""
    assert found == ([3], [])


def case_whole_batches():
    found = []
    for x in DataLoader(torch.arange(8), batch_size=4, shuffle=True):
        found.append(x)
    return {"found": found}
