"""Looking for NaN and infinity from the host."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def train(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x, y in loader:
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        if torch.isnan(loss):  # error: TPF107
            raise FloatingPointError("the loss is NaN")
        if not math.isfinite(loss.item()):  # error: TPF107
            continue
        if loss.isnan() or loss.isinf():  # error: TPF107, TPF107
            continue
        loss.backward()
        for parameter in model.parameters():
            if parameter.grad is not None and not torch.isfinite(parameter.grad).all():  # error: TPF107
                parameter.grad = None
        optimizer.step()


class Safe(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bad = (x.isnan() | x.isinf()).any().item()  # error: TPF107
        if bad or x.isnan().any():  # error: TPF107
            x = torch.nan_to_num(x)
        if torch.isnan(x).any() or torch.isinf(x).any():  # error: TPF107, TPF107
            x = x * 2
        if (x != x).any():  # error: TPF107
            x = x * 0
        assert torch.isfinite(x).all()  # error: TPF107
        assert not torch.isnan(x).any(), "NaN"  # error: TPF107
        assert not torch.isnan(x.sum())  # error: TPF107
        if any(torch.isnan(part).any() for part in x.unbind()):  # error: TPF107
            return x
        return x.relu()


class Half(nn.Module):
    """Other dtypes than float16 do not come there."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype == torch.float16 and not torch.isfinite(x).all():  # audit: TPF107
            x = x.clamp(-1e4, 1e4)
        if x.dtype == torch.float16:
            if torch.isinf(x).any():  # audit: TPF107
                x = x.clamp(-1e4, 1e4)
        elif torch.isinf(x).any():  # error: TPF107
            x = x.clamp(-1e4, 1e4)
        if x.dtype == torch.bfloat16 and torch.isinf(x).any():  # error: TPF107
            x = x.clamp(-1e4, 1e4)
        if x.dtype != torch.float16 and torch.isinf(x).any():  # error: TPF107
            x = x.clamp(-1e4, 1e4)
        return x


# Look-alikes


def of_numbers(value: float) -> bool:
    return math.isnan(value) or not math.isfinite(value)


def of_arrays(values: np.ndarray) -> bool:
    return bool(np.isnan(values).any())


def of_host_tensors(x: torch.Tensor) -> bool:
    if torch.isnan(x.cpu()).any():
        return True
    return False


def on_device(x: torch.Tensor, flag: torch.Tensor) -> torch.Tensor:
    x = x.cuda()
    flag |= torch.isnan(x).any()
    return torch.where(torch.isnan(x), 0.0, x)


def other_truth(x: torch.Tensor) -> torch.Tensor:
    x = x.cuda()
    if (x > 3).any():
        x = x.clamp(max=3)
    return x


def other_read(x: torch.Tensor) -> float:
    return torch.nan_to_num(x.cuda()).sum().item()
