"""Block masks that are built in each step, and others."""

import functools

import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

flex_attention = torch.compile(flex_attention)


def causal(b, h, i, j):
    return i >= j


class Attention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        mask = create_block_mask(causal, None, None, q.shape[2], k.shape[2])  # error: TPF316
        return flex_attention(q, k, v, block_mask=mask)


class Documents(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, document: torch.Tensor) -> torch.Tensor:
        def same(b, h, i, j):
            return document[b, i] == document[b, j]

        mask = create_block_mask(same, B=q.shape[0], H=None, Q_LEN=q.shape[2], KV_LEN=k.shape[2])  # error: TPF316
        return flex_attention(q, k, v, block_mask=mask)


def train(model: nn.Module, loader, optimizer: torch.optim.Optimizer):
    for x in loader:
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 1024, 1024)  # error: TPF316
        model(x.cuda(), mask).mean().backward()
        optimizer.step()


# Look-alikes


@functools.lru_cache
def kept(n: int):
    return create_block_mask(causal, None, None, n, n)


class Once(nn.Module):
    def __init__(self, longest: int):
        super().__init__()
        self.mask = create_block_mask(causal, None, None, longest, longest)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return flex_attention(q, k, v, block_mask=self.mask)


class ByLength(nn.Module):
    def __init__(self):
        super().__init__()
        self.masks = {}

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        n = q.shape[2]
        if n not in self.masks:
            self.masks[n] = create_block_mask(causal, None, None, n, n)
        return flex_attention(q, k, v, block_mask=self.masks[n])


class Compiled(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, document: torch.Tensor) -> torch.Tensor:
        def same(b, h, i, j):
            return document[b, i] == document[b, j]

        mask = create_block_mask(same, None, None, q.shape[2], k.shape[2], _compile=True)
        return flex_attention(q, k, v, block_mask=mask)


def before(model: nn.Module, loader):
    mask = create_block_mask(causal, None, None, 1024, 1024)
    for x in loader:
        model(x.cuda(), mask).mean().backward()
