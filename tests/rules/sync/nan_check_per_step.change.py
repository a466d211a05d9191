"""A condition that Python checks, and one that the device checks."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert torch.isfinite(x).all()
        return x.relu()


def case_holds():
    return {"y": Net()(torch.ones(3, device="cuda"))}


def change_holds(waits):
    """checks on the GPU without waiting"""
    assert waits == (1, 0)


def case_fails():
    return {"y": Net()(torch.full((3,), torch.nan, device="cuda"))}


def change_fails(error, waits):
    """When the condition fails, the error comes later"""
    assert error[0].startswith("AssertionError") and error[1].startswith("RuntimeError: Expected Tensor")


class Whole(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert not torch.isnan(x).any(), "NaN"
        return x.relu()


def case_no_nan():
    return {"y": Whole()(torch.ones(3, device="cuda"))}


def change_no_nan(waits):
    """checks on the GPU without waiting"""
    assert waits == (1, 0)


def case_some_nan():
    return {"y": Whole()(torch.full((3,), torch.nan, device="cuda"))}


def change_some_nan(error, waits):
    """When the condition fails, the error comes later"""
    assert error == ("AssertionError: NaN", "RuntimeError: NaN")


class Both(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.isnan(x).any() or torch.isinf(x).any():
            return x.nan_to_num()
        loss = x.sum()
        if loss.isnan() or loss.isinf():
            return x * 0
        return x.relu()


def case_both():
    values = (1.0, torch.nan, torch.inf, -torch.inf, 3e38)
    return {"y": [Both()(torch.full((3,), value, device="cuda")) for value in values]}


def change_both(waits):
    """The answer is the same; the second check runs even if the first one decides."""
    assert waits[1] < waits[0]
