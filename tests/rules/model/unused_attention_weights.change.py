"""Attention with its weights and without."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, dropout=dropout, batch_first=True)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        y, _ = self.attention(x, x, x, attn_mask=mask)
        return y


def case_output():
    block, x = Block(), torch.randn(2, 33, 16, requires_grad=True)
    y = block(x)
    y.square().mean().backward()
    gradients = [value.grad for value in block.parameters()]
    return {"y": y.detach(), "of_input": x.grad, "gradients": gradients, "keys": list(block.state_dict())}


def change_output(y, of_input, gradients):
    """the output differs by rounding (1e-7 in float32) and gradients with it"""
    torch.testing.assert_close(*y, rtol=1e-5, atol=2e-7)
    torch.testing.assert_close(*of_input, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-7)


def case_all_hidden():
    mask = torch.zeros(3, 3, dtype=torch.bool)
    mask[1] = True
    y = Block()(torch.randn(1, 3, 16), mask)
    return {"hidden": y[0, 1], "other": y[0, ::2].isnan().any().item()}


def change_all_hidden(hidden):
    """a row whose mask hides everything gives zeros instead of NaN"""
    assert hidden[0].isnan().all() and hidden[1].count_nonzero() == 0
