"""Sizes that depend on data, in compiled code."""

import torch
from torch import nn
from torch.nn import functional as F


@torch.compile
def mean_of_valid(x: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    kept = x[valid > 0]  # error: TPF704
    x[valid > 1] = kept.mean() * x[valid > 1]  # error: TPF704, TPF704
    return kept.sum() + x.sum()


class Labels(nn.Module):
    def forward(self, labels: torch.Tensor) -> torch.Tensor:
        counts = torch.bincount(labels)  # error: TPF704
        coded = F.one_hot(labels)  # error: TPF704
        rows = torch.where(labels > 3)[0]  # error: TPF704
        places = (labels > 2).nonzero()  # error: TPF704
        twice = labels.repeat_interleave(counts)  # error: TPF704
        return counts.sum() + coded.sum() + rows.sum() + places.sum() + twice.sum() + labels.unique().sum()  # error: TPF704


model = torch.compile(Labels())


@torch.compile
def on_the_host(n: int) -> torch.Tensor:
    return torch.masked_select(torch.arange(n), torch.arange(n) > 3)  # error: TPF704


# Look-alikes


def not_compiled(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0].mean()


@torch.compile(fullgraph=True)
def whole(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0].mean() + x.nonzero().sum()


@torch.compile
def keeps_the_size(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[x > 3] = 0.0
    x = torch.where(x > 0, x, 0)
    coded = F.one_hot(labels, num_classes=8)
    twice = x.repeat_interleave(2, dim=0)
    picked = torch.nonzero_static(labels, size=3)
    return x.sum() + coded.sum() + twice.sum() + picked.sum()


@torch.compile
def by_position(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return x[index.long()] + x[:, 2:] .sum() + x.gather(0, index.long())


@torch.compiler.disable
def kept_out(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0]


@torch.compile
def guarded(x: torch.Tensor) -> torch.Tensor:
    if torch.compiler.is_compiling():
        return torch.where(x > 0, x, 0).sum()
    return x[x > 0].sum()


@torch.compile
def says_how_many(x: torch.Tensor, repeats: torch.Tensor) -> torch.Tensor:
    return x.repeat_interleave(repeats, dim=0, output_size=8)
