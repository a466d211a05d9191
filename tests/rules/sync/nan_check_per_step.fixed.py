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
        if torch.isnan(loss):
            raise FloatingPointError("the loss is NaN")
        if not math.isfinite(loss.item()):
            continue
        if loss.isnan() | loss.isinf():
            continue
        loss.backward()
        for parameter in model.parameters():
            if parameter.grad is not None and not torch.isfinite(parameter.grad).all():
                parameter.grad = None
        optimizer.step()


class Safe(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bad = (x.isnan() | x.isinf()).any().item()
        if bad or x.isnan().any():
            x = torch.nan_to_num(x)
        if torch.isnan(x).any() | torch.isinf(x).any():
            x = x * 2
        if (x != x).any():
            x = x * 0
        torch._assert_async(torch.isfinite(x).all())
        torch._assert_async(~torch.isnan(x).any(), "NaN")
        assert not torch.isnan(x.sum())
        if any(torch.isnan(part).any() for part in x.unbind()):
            return x
        return x.relu()


class Half(nn.Module):
    """Other dtypes than float16 do not come there."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype == torch.float16 and not torch.isfinite(x).all():
            x = x.clamp(-1e4, 1e4)
        if x.dtype == torch.float16:
            if torch.isinf(x).any():
                x = x.clamp(-1e4, 1e4)
        elif torch.isinf(x).any():
            x = x.clamp(-1e4, 1e4)
        if x.dtype == torch.bfloat16 and torch.isinf(x).any():
            x = x.clamp(-1e4, 1e4)
        if x.dtype != torch.float16 and torch.isinf(x).any():
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
