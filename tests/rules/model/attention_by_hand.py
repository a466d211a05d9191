"""Attention that is written out, and products with a softmax that are something else."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def at_once(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=-1) @ v  # error: TPF303


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.qkv, self.drop = nn.Linear(width, 3 * width), nn.Dropout(0.1)

    def forward(self, x, mask=None):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = torch.matmul(q, k.transpose(-1, -2)) * self.scale
        if mask is not None:
            scores = scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)
        weights = F.softmax(scores.float(), dim=-1).type_as(q)  # error: TPF303
        weights = self.drop(weights)
        return torch.matmul(weights, v).transpose(1, 2).reshape(batch, tokens, width)


def one_name(q, k, v):
    attn = q.bmm(k.transpose(1, 2))
    attn = attn.softmax(dim=-1)  # error: TPF303
    return attn.bmm(v)


def equations(q, k, v, scale: float):
    sim = torch.einsum("b h i d, b h j d -> b h i j", q, k) * scale
    attn = sim.softmax(dim=-1)  # error: TPF303
    return torch.einsum("b h i j, b h j d -> b h i d", attn, v)


def channels_first(qkv, heads: int):
    width = qkv.shape[1] // 3
    q, k, v = qkv.chunk(3, dim=1)
    scale = (width // heads) ** -0.25
    weight = torch.einsum("bct,bcs->bts", q * scale, k * scale)
    weight = torch.softmax(weight.float(), dim=-1).type(weight.dtype)  # error: TPF303
    return torch.einsum("bts,bcs->bct", weight, v)


def between_channels(q, k, v):
    """The softmax is over channels, or the result is laid out the other way round."""
    turned = torch.softmax(torch.einsum("bct,bcs->bst", q, k), dim=-1)
    mixed = torch.softmax(torch.einsum("bct,bct->bct", q, k), dim=-1)
    return torch.einsum("bst,bcs->bct", turned, v), torch.einsum("bct,bct->bt", mixed, v)


class Biased(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias, self.softmax = nn.Parameter(torch.zeros(64, 64)), nn.Softmax(dim=-1)

    def forward(self, q, k, v):
        attn = q @ k.transpose(-2, -1)
        attn = attn + self.bias
        return self.softmax(attn) @ v  # audit: TPF303


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.1)

    def forward(self, q, k, v, mask):
        scores = torch.matmul(q, k.transpose(-2, -1)) / 8
        if mask.size(2) > 0:
            hidden = mask.unsqueeze(1).eq(0)
            scores = scores.masked_fill(hidden, -float("inf"))
            weights = torch.softmax(scores, dim=-1).masked_fill(hidden, 0.0)  # error: TPF303
        else:
            weights = torch.softmax(scores, dim=-1)
        weights = self.drop(weights)
        return torch.matmul(weights, v)

    def filled(self, q, k, v, mask):
        weights = torch.softmax(torch.matmul(q, k.transpose(-2, -1)), dim=-1)
        weights = weights.masked_fill(mask, 1e-3)
        return torch.matmul(weights, v)

    def both(self, q, k, v, sharp: bool):
        scores = torch.matmul(q, k.transpose(-2, -1))
        weights = torch.softmax(scores, dim=-1)
        if sharp:
            weights = weights * torch.softmax(scores, dim=-1)
        return torch.matmul(weights, v)


# Look-alikes


def returned(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor):
    weights = torch.softmax(q @ k.transpose(-2, -1), dim=-1)
    return weights @ v, weights


class Kept(nn.Module):
    def forward(self, q, k, v):
        weights = torch.softmax(q @ k.transpose(-2, -1), dim=-1)
        self.weights = weights
        return weights @ v


def capped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k.transpose(-2, -1)
    scores = torch.tanh(scores / 50.0) * 50.0
    return torch.softmax(scores, dim=-1) @ v


class Talking(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Conv2d(8, 8, 1)

    def forward(self, q, k, v):
        scores = self.mix(q @ k.transpose(-2, -1))
        return scores.softmax(dim=-1) @ v


def other_axis(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-2, -1), dim=1) @ v


def expectation(logits: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return torch.softmax(logits, dim=-1) @ values


def router(x: torch.Tensor, weight: torch.Tensor, experts: torch.Tensor) -> torch.Tensor:
    logits = x @ weight
    return torch.softmax(logits, dim=-1) @ experts


def linear(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return q.softmax(dim=-1) @ (k.softmax(dim=-2).transpose(-2, -1) @ v)


def strongest(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor):
    scores = q @ k.transpose(-2, -1)
    best = scores.argmax(dim=-1)
    return torch.softmax(scores, dim=-1) @ v, best


def pooled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    weights = torch.softmax(x @ w.t(), dim=-1)
    return (weights * x).sum(dim=-1)


def counted_axis(q, k, v):
    """The transposed factor has four axes, and the softmax is over the last one."""
    scale = k.shape[3] ** -0.25
    attn = ((q * scale) @ (k.transpose(2, 3) * scale)).softmax(3)  # error: TPF303
    return (attn @ v).transpose(2, 3)


def counted_axis_of_three(q, k, v):
    attn = F.softmax(torch.bmm(q, k.transpose(1, 2)), dim=2)  # error: TPF303
    return torch.bmm(attn, v)


class CountedAxis(nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax = nn.Softmax(dim=2)

    def forward(self, q, k, v):
        return torch.bmm(self.softmax(torch.bmm(q, k.permute(0, 2, 1))), v)  # error: TPF303


def known_axes(batch: int, heads: int):
    q = torch.randn(batch, heads, 64, 32, device="cuda")
    return torch.softmax(q @ q.transpose(-2, -1), dim=3) @ q  # error: TPF303


def over_queries(q, k, v):
    attn = F.softmax(torch.bmm(q, k.transpose(1, 2)), dim=1)
    return torch.bmm(attn, v)


def over_queries_of_four(q, k, v):
    attn = (q @ k.transpose(2, 3)).softmax(2)
    return attn @ v


def unknown_axes(q, k, v):
    attn = (q @ k.transpose(-2, -1)).softmax(2)
    return attn @ v


def over_heads(batch: int, heads: int):
    q = torch.randn(batch, heads, 64, 32, device="cuda")
    return torch.softmax(q @ q.transpose(-2, -1), dim=1) @ q


def counted_axis_of_an_equation(q, k, v):
    attn = torch.einsum("nhcq,nhck->nhqk", q, k / 8).softmax(dim=3)  # error: TPF303
    return torch.einsum("nhqk,nhck->nhcq", attn, v)


def over_queries_of_an_equation(q, k, v):
    attn = torch.einsum("nhcq,nhck->nhqk", q, k / 8).softmax(dim=2)
    return torch.einsum("nhqk,nhck->nhcq", attn, v)


class TurnedByTheCaller(nn.Module):
    def split(self, x, is_key: bool = False):
        x = x.view(*x.shape[:2], 8, -1)
        return x.permute(0, 2, 3, 1) if is_key else x.permute(0, 2, 1, 3)

    def attend(self, q, k, v):
        attn = torch.softmax(torch.matmul(q, k) / 8, dim=-1)  # error: TPF303
        return [torch.matmul(attn, v)]

    def forward(self, q, k, v):
        k = self.split(k, is_key=True)
        return self.attend(self.split(q), k, self.split(v))


class Mixture(nn.Module):
    """The second factor is a weight, which nothing turns."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(64, 8))
        self.experts = nn.Parameter(torch.zeros(8, 64))

    def mixed(self, x, gate):
        return torch.softmax(torch.matmul(x, gate), dim=-1) @ self.experts

    def forward(self, x):
        return self.mixed(x, self.gate)
