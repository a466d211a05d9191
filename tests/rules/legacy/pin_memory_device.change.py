"""A loader whose device is read."""

import torch
from torch.utils.data import DataLoader, TensorDataset


def case_read():
    loader = DataLoader(TensorDataset(torch.arange(4)), batch_size=2, pin_memory_device="cuda")
    return {"device": loader.pin_memory_device, "batches": [rows for (rows,) in loader]}


def change_read(device):
    """Unsafe if a file that may run in the same process reads attributes of this name"""
    assert device == ("cuda", "")
