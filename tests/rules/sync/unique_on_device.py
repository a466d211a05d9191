import numpy as np
import torch
from torch import nn


class Usage(nn.Module):
    def forward(self, codes: torch.Tensor, x: torch.Tensor):
        counts = torch.bincount(codes, minlength=512)  # error: TPF113
        weighted = codes.bincount()  # error: TPF113
        values = torch.unique(codes)  # error: TPF113
        names, where = codes.unique(return_inverse=True)  # error: TPF113
        runs = torch.unique_consecutive(codes)  # error: TPF113
        bins = torch.histc(x, bins=10)  # error: TPF113
        zeros = torch.histc(x, 10, 0, 0)  # error: TPF113
        return counts, weighted, values, names, where, runs, bins, zeros


# Look-alikes.


class Bounded(nn.Module):
    def forward(self, x: torch.Tensor):
        return torch.histc(x, bins=10, min=0.0, max=1.0), x.histc(10, 0, 1)


class Scattered(nn.Module):
    def forward(self, codes: torch.Tensor):
        return torch.zeros(512, dtype=codes.dtype, device=codes.device).scatter_add_(0, codes, torch.ones_like(codes))


def on_host():
    labels = torch.randint(0, 10, (100,))
    return labels.unique(), torch.bincount(labels), torch.histc(labels.float())


def arrays(values: np.ndarray):
    return np.unique(values), np.bincount(values)


def of_a_list(values: list[int]):
    return sorted(set(values))


def moved_first(codes: torch.Tensor):
    return codes.cpu().unique()


def on_the_host_in_a_loop(batches):
    for features, labels in batches:
        labels_cpu = labels.to("cpu")
        yield torch.unique(labels_cpu), torch.bincount(features.rows.to("cpu"))
