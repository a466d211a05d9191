"""Calls of flex_attention in a file that compiles nothing."""

import torch
import torch.nn.attention.flex_attention as flex
from torch import nn
from torch.nn.attention.flex_attention import flex_attention


class Attention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask) -> torch.Tensor:
        return flex_attention(q, k, v, block_mask=mask)  # error: TPF315


def by_module(q, k, v):
    return flex.flex_attention(q, k, v)  # error: TPF315


def softcap(score, b, h, i, j):
    return 20 * torch.tanh(score / 20)


def with_scores(q, k, v):
    attend = flex_attention
    return attend(q, k, v, score_mod=softcap, enable_gqa=True)  # error: TPF315


# Look-alikes


def fused(q, k, v):
    return nn.functional.scaled_dot_product_attention(q, k, v)


def passed_on(model):
    model.attend = flex_attention
    return model


def given(q, k, v, flex_attention):
    return flex_attention(q, k, v)


def only_the_mask(mask_mod, n: int):
    return flex.create_mask(mask_mod, 1, 1, n, n)


def of_another_library(library, q, k, v):
    return library.flex_attention(q, k, v)
