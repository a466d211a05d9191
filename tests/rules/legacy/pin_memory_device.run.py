"""Batches of a loader with and without the deprecated parameter."""

import torch
from torch.utils.data import DataLoader, TensorDataset


def case_batches():
    torch.manual_seed(0)
    dataset = TensorDataset(torch.randn(10, 3), torch.arange(10))
    return [list(batch) for batch in DataLoader(dataset, batch_size=4, pin_memory_device="cuda")]


def case_shuffled():
    dataset = TensorDataset(torch.arange(10))
    generator = torch.Generator().manual_seed(0)
    loader = DataLoader(
        dataset,
        batch_size=4,
        pin_memory_device="cuda:0",
        shuffle=True,
        generator=generator,
    )
    return [batch[0] for batch in loader]


def kept_other_devices():
    dataset = TensorDataset(torch.arange(10))
    return [batch[0] for batch in DataLoader(dataset, pin_memory_device="xpu")]
