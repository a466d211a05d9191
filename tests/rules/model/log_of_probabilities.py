"""Logarithms of probabilities that nothing else reads, and of some that are read."""

import torch
import torch.nn.functional as F
from torch import nn


def classes(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    first = F.nll_loss(torch.log(F.softmax(logits, dim=1)), y)  # error: TPF306
    second = logits.softmax(-1).log()  # error: TPF306
    third = torch.log(torch.softmax(logits, dim=-1) + 1e-8)  # error: TPF306
    return first + second.mean() + third.mean()


def untyped(logits):
    return logits.softmax(dim=-1).log()  # error: TPF306


def by_name(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    probabilities = F.softmax(logits, dim=1)
    logs = torch.log(probabilities)  # error: TPF306
    return F.nll_loss(logs, y)


def bits(logits: torch.Tensor) -> torch.Tensor:
    return -torch.log(torch.sigmoid(logits)).mean()  # audit: TPF306


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 4)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x):
        return torch.log(self.softmax(self.body(x))).mean()  # error: TPF306


# Look-alikes


def read_elsewhere(logits: torch.Tensor) -> torch.Tensor:
    p = F.softmax(logits, dim=-1)
    entropy = -(p * torch.log(p + 1e-8)).sum(-1)
    return entropy


def entropies(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.binary_cross_entropy(torch.sigmoid(logits), y)


def for_a_metric(logits: torch.Tensor, y: torch.Tensor):
    p = torch.sigmoid(logits)
    loss = F.binary_cross_entropy(p, y)
    return loss, (p > 0.5).float().mean()


def with_logits(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.binary_cross_entropy_with_logits(logits, y) + F.log_softmax(logits, dim=1).mean()


def drawn(logits: torch.Tensor) -> torch.Tensor:
    return torch.log(F.gumbel_softmax(logits, tau=0.5))


def of_a_sum(logits: torch.Tensor) -> torch.Tensor:
    return torch.log(F.softmax(logits, dim=1).sum(dim=0)) + torch.log(1 - F.softmax(logits, dim=1))


def softplus(logits: torch.Tensor) -> torch.Tensor:
    return torch.log(torch.sigmoid(logits) + 1.0)


def of_others(jax, logits, y, bce):
    return jax.log(jax.softmax(logits)) + bce(torch.sigmoid(logits), y)


class Served(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 1), nn.Sigmoid())
        self.criterion = nn.BCELoss()

    def forward(self, x):
        return self.body(x)

    def loss(self, x, y):
        return self.criterion(self.body(x), y)
