import numpy as np
import torch
from torch import nn


class Expand(nn.Module):
    def forward(self, x: torch.Tensor, repeats: torch.Tensor):
        longer = x.repeat_interleave(repeats, dim=0)  # error: TPF114
        same = torch.repeat_interleave(x, repeats, 0)  # error: TPF114
        indices = torch.repeat_interleave(repeats)  # error: TPF114
        none = x.repeat_interleave(repeats=repeats, output_size=None)  # error: TPF114
        return longer, same, indices, none


# Look-alikes.


class Sized(nn.Module):
    def forward(self, x: torch.Tensor, repeats: torch.Tensor, total: int):
        return x.repeat_interleave(repeats, dim=0, output_size=total)


class Numbers(nn.Module):
    def forward(self, x: torch.Tensor):
        return x.repeat_interleave(2, dim=0), torch.repeat_interleave(x, 3), x.repeat_interleave(x.shape[0])


def on_host():
    x = torch.arange(3)
    return x.repeat_interleave(torch.tensor([1, 2, 3])), torch.repeat_interleave(torch.tensor([1, 2]))


def on_one_device(lengths: torch.Tensor, x: torch.Tensor):
    first = torch.repeat_interleave(torch.arange(3), lengths), torch.arange(3).repeat_interleave(lengths)
    return first, torch.repeat_interleave(torch.arange(3, device=x.device), lengths)  # error: TPF114


def arrays(values: np.ndarray):
    return np.repeat(values, values)


def repeated(x: torch.Tensor):
    return x.repeat(2, 1), x.expand(3, -1), torch.tile(x, (2,))


def hidden(x: torch.Tensor, **options):
    return x.repeat_interleave(**options)
