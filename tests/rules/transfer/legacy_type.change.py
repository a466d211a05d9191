"""A cast that moves to the host, and one that does not."""

import torch
from torch import nn


class Counts(nn.Module):
    def forward(self, x: torch.Tensor):
        return x.argmax(-1).type(torch.IntTensor), x.type(torch.LongTensor)


def case_casts():
    made = Counts()(torch.tensor([[1.5, -2.5]], device="cuda"))
    return {"devices": [one.device.type for one in made], "dtypes": [one.dtype for one in made], "made": [one.tolist() for one in made]}


def change_casts(devices):
    """the result stays on the GPU instead of moving to the CPU"""
    assert devices == (["cpu", "cpu"], ["cuda", "cuda"])
