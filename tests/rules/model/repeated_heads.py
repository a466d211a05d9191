"""Keys and values with fewer heads than the queries, and how they reach attention."""

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from torch import nn


class Interleaved(nn.Module):
    def __init__(self, dim: int, heads: int, kept: int):
        super().__init__()
        self.q, self.kv = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim * kept // heads)
        self.heads, self.kept, self.group = heads, kept, heads // kept

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, _ = x.shape
        q = self.q(x).view(b, t, self.heads, -1).transpose(1, 2)
        k, v = self.kv(x).view(b, t, 2 * self.kept, -1).transpose(1, 2).chunk(2, dim=1)
        if self.group > 1:
            k = k.repeat_interleave(self.group, dim=1)  # error: TPF312
            v = v.repeat_interleave(self.group, dim=1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def before_the_turn(q, k, v, group: int):
    k = torch.repeat_interleave(k, repeats=group, dim=2)  # error: TPF312
    v = torch.repeat_interleave(v, dim=2, repeats=group)
    return F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))


def repeat_kv(x: torch.Tensor, n: int) -> torch.Tensor:
    b, heads, t, d = x.shape
    if n == 1:
        return x
    x = x[:, :, None, :, :].expand(b, heads, n, t, d)
    return x.reshape(b, heads * n, t, d)


class Helped(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        k, v = repeat_kv(k, 4), repeat_kv(v, 4)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0)  # error: TPF312


def expanded(q, k, v):
    b, h, t, d = k.shape
    return F.scaled_dot_product_attention(
        q,
        k.unsqueeze(2).expand(b, h, 4, t, d).flatten(1, 2),  # error: TPF312
        v.unsqueeze(2).expand(b, h, 4, t, d).flatten(1, 2),
    )


def in_words(q, k, v):
    k = repeat(k, "b h t d -> b (h n) t d", n=4)  # error: TPF312
    v = repeat(v, "b h t d -> b (h n) t d", n=4)
    return F.scaled_dot_product_attention(q, k, v)


# Look-alikes


def as_many(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def with_a_mask(q, k, v, mask):
    k, v = k.repeat_interleave(4, dim=1), v.repeat_interleave(4, dim=1)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def in_another_order(q, k, v):
    """Copies of all heads, one after the other: query 1 takes key 1, not key 0."""
    b, h, t, d = k.shape
    k, v = k.repeat(1, 4, 1, 1), v[:, None].expand(b, 4, h, t, d).reshape(b, 4 * h, t, d)
    return F.scaled_dot_product_attention(q, k, v)


def of_beams(q, k, v, beams: int):
    k, v = k.repeat_interleave(beams, dim=0), v.repeat_interleave(beams, dim=0)
    return F.scaled_dot_product_attention(q, k, v)


def of_tokens(q, k, v):
    k, v = k.repeat_interleave(2, dim=-2), v.repeat_interleave(2, dim=-2)
    return F.scaled_dot_product_attention(q, rearrange(k, "b h t d -> b h t d"), v)


def by_counts(q, k, v, counts: torch.Tensor):
    k, v = torch.repeat_interleave(k, counts, dim=1), torch.repeat_interleave(v, counts, dim=1)
    return F.scaled_dot_product_attention(q, k, v)


def in_full_precision(q, k, v):
    k, v = k.repeat_interleave(4, dim=1), v.repeat_interleave(4, dim=1)
    return F.scaled_dot_product_attention(q.float(), k.float(), v.float())
