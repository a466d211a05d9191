"""Several scalar reads side by side."""

import torch
import torch.nn.functional as F
from torch import nn


def stats(x: torch.Tensor) -> dict[str, float]:
    x = x.cuda().float()
    low, mean, high = torch.stack([x.min(), x.mean(), x.max()]).tolist()
    return {"low": low, "mean": mean, "high": high}


def losses_of_step(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> dict[str, float]:
    out = model(x.cuda())
    y = y.cuda()
    a, b, c = F.mse_loss(out, y), F.l1_loss(out, y), F.huber_loss(out, y)
    a_value, b_value, c_value = torch.stack([a, b, c]).tolist()
    return {
        "mse": a_value,
        "l1": b_value,
        "huber": c_value,
    }


def mixed_kinds(x: torch.Tensor) -> tuple[float, int, float]:
    x = x.cuda().float()
    mean = x.mean().item()
    count = (x > 0).sum().item()
    top = x.max().item()
    return mean, count, top


def with_comments(x: torch.Tensor) -> tuple[float, float, float]:
    x = x.cuda().float()
    x_mean, x_std, x_max = torch.stack([x.mean(), x.std(), x.max()]).tolist()
    a = x_mean  # the centre
    b = x_std  # the width
    c = x_max
    return a, b, c


# Look-alikes


def two_are_few(x: torch.Tensor) -> tuple[float, float]:
    x = x.cuda()
    low = x.min().item()
    high = x.max().item()
    return low, high


def apart(model: nn.Module, x: torch.Tensor) -> tuple[float, float, float]:
    x = x.cuda()
    first = x.mean().item()
    x = model(x)
    second = x.mean().item()
    x = model(x)
    third = x.mean().item()
    return first, second, third


def on_the_host(x: torch.Tensor) -> tuple[float, float, float]:
    x = x.cpu()
    a = x.min().item()
    b = x.mean().item()
    c = x.max().item()
    return a, b, c


def one_copy(x: torch.Tensor) -> tuple[float, float, float]:
    x = x.cuda()
    low, mean, high = torch.stack([x.min(), x.mean(), x.max()]).tolist()
    return low, mean, high


def per_element_is_another_rule(x: torch.Tensor) -> list[float]:
    x = x.cuda().flatten()
    return [t.item() for t in x]


def numbers(a: str, b: str, c: str) -> tuple[float, float, float]:
    first = float(a)
    second = float(b)
    third = float(c)
    return first, second, third


def results_of_unknown_code(accelerator, rewards, margins, metrics: dict) -> None:
    metrics["chosen"].append(accelerator.gather(rewards[0]).mean().item())
    metrics["rejected"].append(accelerator.gather(rewards[1]).mean().item())
    metrics["margins"].append(accelerator.gather(margins).mean().item())
