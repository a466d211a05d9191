import torch
from torch import nn
from transformer_engine import pytorch as te


class Wide(nn.Module):
    def __init__(self, width: int = 1000):
        super().__init__()
        self.first = nn.Linear(1024, 1000)  # error: TPF374
        self.second = nn.Linear(1000, 1000)  # error: TPF374
        self.third = nn.Linear(width, 1024)  # error: TPF374
        self.head = nn.Linear(1024, 40)


def train(model: Wide, batch: torch.Tensor) -> torch.Tensor:
    with te.fp8_autocast(enabled=True):
        return model(batch).sum()


# Look-alikes.


class Sixteens(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(1024, 1008)
        self.second = nn.Linear(1008, 1008)


class Prescribed(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(13, 128)
        self.classes = nn.Linear(512, 10)


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(20, 20)
        self.second = nn.Linear(20, 20)


class Convolution(nn.Module):
    """There are no convolutions in FP8."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(72, 72, 3)


class AtRunTime(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.first = nn.Linear(width, width)


def product(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    weights = torch.zeros(1000, 4100, device="cuda").to(torch.float8_e4m3fn)
    return torch._scaled_mm(x, weights.t(), scale, scale, out_dtype=torch.bfloat16)  # error: TPF374


def product_of_multiples(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    weights = torch.zeros(1024, 4096, device="cuda").to(torch.float8_e4m3fn)
    return torch._scaled_mm(x, weights.t(), scale, scale, out_dtype=torch.bfloat16)
