"""Dropout in methods of modules: dropout that stays on in evaluation mode, and others."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = dropout

    def forward(self, q, k, v):
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)  # error: TPF505
        z = F.scaled_dot_product_attention(q, k, v, None, self.dropout)  # error: TPF505
        return F.dropout(y + z, 0.5)  # error: TPF505

    def by_default(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout2d(F.dropout(x))  # error: TPF505, TPF505


class FromSettings(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.rate = config.dropout
        self.layer = config.layer

    def forward(self, q, k, v):
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.rate)  # error: TPF505
        return y + F.scaled_dot_product_attention(q, k, v, dropout_p=self.rate if self.training else 0.0)


# Look-alikes


class Careful(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = dropout

    def forward(self, q, k, v):
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if self.training else 0.0)
        rate = self.dropout if self.training else 0.0
        return y + F.scaled_dot_product_attention(q, k, v, dropout_p=rate)


class InABranch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            x = F.dropout(x, 0.1)
        return x


class OnPurpose(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.1, self.training) + F.dropout(x, p=0.1, training=True) + F.alpha_dropout(x, 0.1)


class Without(nn.Module):
    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.dropout, self.drop = dropout, nn.Dropout(0.1)

    def forward(self, q, k, v, p: float):
        y = F.scaled_dot_product_attention(q, k, v) + F.scaled_dot_product_attention(q, k, v, dropout_p=0.0)
        passed = F.scaled_dot_product_attention(q, k, v, dropout_p=p)
        return self.drop(y) + passed + F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)


def augment(x: torch.Tensor) -> torch.Tensor:
    """A function has no mode."""
    return F.dropout(x, 0.2)
