"""Batches in memory that is pinned and that is not."""

import io

import torch
from torch.utils.data import DataLoader, TensorDataset, random_split


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


def case_of_a_file():
    pinned, file = [], io.BytesIO()
    torch.save([torch.arange(2.0), torch.ones(2)], file)
    file.seek(0)
    data = torch.load(file, map_location="cpu")
    for x in DataLoader(data, 2):
        pinned.append(x.is_pinned())
        x.cuda().sum()
    return {"pinned": pinned}


def change_of_a_file(pinned):
    """into pages that the system cannot swap"""
    assert pinned == ([False], [True])


def case_of_ones_own():
    pinned, sums = [], []
    loader = DataLoader(torch.arange(6.0).reshape(3, 2), 2, collate_fn=Pair)
    for batch in loader:
        pinned.append(batch.x.is_pinned())
        sums.append(batch.x.cuda().sum())
    return {"pinned": pinned, "sums": sums}


def kept_where_the_data_is_on_the_gpu(x: torch.Tensor, y: torch.Tensor, device):
    sums = []
    for (rows,) in DataLoader(TensorDataset(x.to("cuda")), 2):
        sums.append(rows.cuda().sum())
    for (rows,) in DataLoader(TensorDataset(y.to(device)), 2):
        sums.append(rows.cuda().sum())
    first, _ = random_split(TensorDataset(torch.arange(6.0, device="cuda")), [4, 2])
    for (rows,) in DataLoader(first, 2):
        sums.append(rows.to(device).sum())
    return sums


def kept_where_a_file_may_hold_tensors_of_the_gpu(path, device):
    sums = []
    for rows in DataLoader(torch.load(path, map_location=device), 2):
        sums.append(rows.cuda().sum())
    for rows in DataLoader(torch.load(path), 2):
        sums.append(rows.cuda().sum())
    data = torch.load(path, map_location=device)
    for (rows,) in DataLoader(TensorDataset(data["x"]), 2):
        sums.append(rows.cuda().sum())
    return sums
