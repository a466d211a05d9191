"""Causal masks that attention gets as tensors, and other masks."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Buffer(nn.Module):
    def __init__(self, longest: int):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest, dtype=torch.bool)))
        self.register_buffer("bias", torch.tril(torch.ones(longest, longest)).view(1, 1, longest, longest))

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        t = q.size(-2)
        y = scaled_dot_product_attention(q, k, v, attn_mask=self.mask[:t, :t])  # error: TPF311
        return y + scaled_dot_product_attention(q, k, v, self.bias[:, :, :t, :t] == 1)  # error: TPF311


class EachTime(nn.Module):
    def forward(self, q, k, v):
        n = q.shape[-2]
        later = torch.triu(torch.full((n, n), float("-inf"), device=q.device), diagonal=1)
        ones = torch.ones(n, n, dtype=torch.bool, device=q.device)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=later)  # error: TPF311
        y += F.scaled_dot_product_attention(q, k, v, attn_mask=~ones.triu(1))  # error: TPF311
        hidden = torch.zeros(n, n).masked_fill(ones.tril().logical_not(), float("-inf"))
        y += F.scaled_dot_product_attention(q, k, v, attn_mask=hidden.to(q.dtype), dropout_p=0.0)  # error: TPF311
        at = torch.arange(n, device=q.device)
        return y + F.scaled_dot_product_attention(q, k, v, at[:, None] >= at[None, :])  # error: TPF311


def of_transformer(q, k, v):
    mask = nn.Transformer.generate_square_subsequent_mask(q.shape[-2], device=q.device)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # error: TPF311


def causal(n: int) -> torch.Tensor:
    mask = (torch.triu(torch.ones(n, n)) == 1).transpose(0, 1)
    return mask.float().masked_fill(mask == 0, float("-inf")).masked_fill(mask == 1, 0.0)


class Block(nn.Module):
    def attend(self, q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # error: TPF311

    def forward(self, q, k, v):
        return self.attend(q, k, v, causal(q.shape[-2]))


# Look-alikes


def by_flag(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def with_padding(q, k, v, padding):
    n = q.shape[-2]
    mask = torch.tril(torch.ones(n, n, dtype=torch.bool)) & padding[:, None]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def with_padding_at_times(q, k, v, padding=None):
    mask = torch.ones(8, 8, dtype=torch.bool).tril()
    if padding is not None:
        mask = mask & padding
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class Continued(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(1024, 1024, dtype=torch.bool)))

    def forward(self, q, k, v, past: int):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask[past : past + q.shape[-2], : k.shape[-2]])


def strictly_before(q, k, v):
    before = torch.ones(8, 8, dtype=torch.bool).tril(-1)
    window = torch.ones(8, 8, dtype=torch.bool).tril().triu(-2)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=before)
    return y + F.scaled_dot_product_attention(q, k, v, attn_mask=window)


def added(q, k, v):
    """A mask of numbers is added to the scores: one everywhere below hides nothing."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=torch.tril(torch.ones(8, 8)))


def given(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class AtTimes(nn.Module):
    def attend(self, q, k, v, mask=None):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def forward(self, q, k, v):
        return self.attend(q, k, v, causal(q.shape[-2])) + self.attend(q, k, v)


def grown(q, k, v, layers):
    mask = torch.ones(8, 8, dtype=torch.bool).tril()
    for layer in layers:
        q = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        mask = layer(mask)
    return q
