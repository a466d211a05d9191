"""A condition that Python checks, and one that the device checks."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert (x >= 0).all()
        return x.relu()


def case_holds():
    return {"y": Net()(torch.ones(3, device="cuda"))}


def change_holds(waits):
    """checks on the GPU without waiting"""
    assert waits == (1, 0)


def case_fails():
    return {"y": Net()(-torch.ones(3, device="cuda"))}


def change_fails(error, waits):
    """When the condition fails, the error comes later"""
    assert error[0].startswith("AssertionError") and error[1].startswith("RuntimeError: Expected Tensor")


class Told(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert torch.all(x <= 1), "out of range"
        return x.relu()


def case_told():
    return {"y": Told()(torch.full((3,), 2.0, device="cuda"))}


def change_told(error, waits):
    """When the condition fails, the error comes later"""
    assert error == ("AssertionError: out of range", "RuntimeError: out of range")


class Empty(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert not x.byte().any()
        return x + 1


def case_bytes_of_zero():
    return {"y": Empty()(torch.zeros(3, device="cuda"))}


def case_bytes():
    return {"y": Empty()(torch.ones(3, device="cuda"))}


def change_bytes(error, waits):
    """When the condition fails, the error comes later"""
    assert error[0].startswith("AssertionError") and error[1].startswith("RuntimeError: Expected Tensor")
