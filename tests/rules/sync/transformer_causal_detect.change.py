"""Transformers that look whether a mask is causal, and that are told."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor):
        causal = nn.Transformer.generate_square_subsequent_mask(x.size(1), device=x.device)
        return self.encoder(x, causal)


def case_told():
    model, x = Model().cuda().eval(), torch.randn(2, 5, 16, device="cuda", requires_grad=True)
    model(x).square().sum().backward()
    return {"model": model, "x": x}


def change_told(waits):
    """`is_causal=True` is the result that torch would compute."""
    assert waits[1] < waits[0]


def kept_where_the_mask_changes(encoder: nn.TransformerEncoder, x: torch.Tensor):
    causal = nn.Transformer.generate_square_subsequent_mask(x.size(1), device="cuda")
    causal.zero_()
    return encoder(x.cuda(), causal)


def kept_where_the_mask_is_handed_on(encoder: nn.TransformerEncoder, x: torch.Tensor, change):
    causal = nn.Transformer.generate_square_subsequent_mask(x.size(1), device="cuda")
    change(causal)
    return encoder(x.cuda(), causal)
