import torch
from torch import nn


class Mask(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        lowest = x.min()
        filled = x.masked_fill(mask, lowest)  # error: TPF112
        same = torch.masked_fill(x, mask, lowest)  # error: TPF112
        x.masked_fill_(mask, value=lowest)  # error: TPF112
        x[x > 0] = lowest  # error: TPF112
        return filled, same, x


def library(x: torch.Tensor, mask: torch.Tensor):
    return x.masked_fill(mask, x.mean())  # error: TPF112


# Look-alikes.


class Numbers(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        x[x > 0] = 0.0
        x.masked_fill_(mask, float("-inf"))
        return x.masked_fill(mask, 0), x.masked_fill(mask, torch.finfo(x.dtype).min)


class Chosen(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        return torch.where(mask, x.min(), x)


class Elements(nn.Module):
    def forward(self, x: torch.Tensor, values: torch.Tensor):
        x[0] = x.min()
        x[:, 1] = x.mean()
        return x


def host_number(x: torch.Tensor, mask: torch.Tensor):
    return x.cuda().masked_fill(mask, torch.tensor(0.0))


def on_host():
    x = torch.zeros(10)
    x[x > 0] = x.min()
    return x.masked_fill(x > 0, x.max())


def given_number(x: torch.Tensor, mask: torch.Tensor, value: float):
    return x.masked_fill(mask, value)
