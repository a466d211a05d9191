"""Tests for an empty mask in front of masked assignments."""

import torch
from torch import nn


def clean(x: torch.Tensor) -> torch.Tensor:
    x = x.cuda().relu()
    mask = torch.isnan(x)
    x[mask] = 0.0
    return x


def clean_indices(index: torch.Tensor, count: int) -> torch.Tensor:
    index = index.cuda().long()
    outside = index >= count
    # The padding row.
    index[outside] = count
    index.masked_fill_(outside, 0)
    index.masked_fill_(outside, 0)  # again
    return index


def clean_two(x: torch.Tensor, limit: float) -> torch.Tensor:
    x = x.cuda().relu()
    over = x > limit
    seen = torch.zeros_like(over)

    # keep what is finite
    x[over] = limit
    # and remember

    seen[over] = True
    # done
    return x * seen


def direct(labels: torch.Tensor) -> torch.Tensor:
    labels = labels.cuda().long()
    labels[labels < 0] = -100
    return labels


# Look-alikes


def has_else(x: torch.Tensor) -> torch.Tensor:
    x = x.cuda()
    mask = x.isnan()
    if mask.any():
        x[mask] = 0.0
    else:
        x = x + 1
    return x


def does_more(x: torch.Tensor) -> torch.Tensor:
    x = x.cuda()
    mask = x.isnan()
    if mask.any():
        print("not a number")
        x[mask] = 0.0
    return x


def writes_tensors(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x, y = x.cuda(), y.cuda()
    mask = x.isnan()
    if mask.any():
        x[mask] = y[mask]
    return x


def another_mask(x: torch.Tensor) -> torch.Tensor:
    x = x.cuda()
    mask, other = x.isnan(), x > 3
    if mask.any():
        x[other] = 0.0
    return x


def indices_are_no_mask(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    x, index = x.cuda(), index.cuda().long()
    if index.any():
        x[index] = 0.0
    return x


def host(x: torch.Tensor) -> torch.Tensor:
    x = x.cpu()
    mask = x.isnan()
    if mask.any():
        x[mask] = 0.0
    return x


def one_of_several(x: torch.Tensor, early: bool) -> torch.Tensor:
    x = x.cuda()
    mask = x.isnan()
    if early:
        return x
    elif mask.any():
        x[mask] = 0.0
    return x


class AllOf(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = x > 3
        if mask.all():
            x[mask] = 0.0
        return x
