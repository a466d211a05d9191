from typing import Optional

import torch
import torch.nn as nn
from torch.nn import Transformer, TransformerDecoder, TransformerDecoderLayer


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, batch_first=True), 6)
        self.decoder = TransformerDecoder(TransformerDecoderLayer(64, 4), num_layers=2)
        self.both = Transformer(64, 4)

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        given = self.encoder(x, mask=mask)  # error: TPF128
        causal = nn.Transformer.generate_square_subsequent_mask(x.size(1), device=x.device)
        made = self.encoder(x, causal)  # error: TPF128
        inline = self.encoder(  # error: TPF128
            x,
            mask=self.both.generate_square_subsequent_mask(x.size(1)),
        )
        asked = self.encoder(x, mask, is_causal=None)  # error: TPF128
        decoded = self.decoder(x, given, tgt_mask=causal)  # error: TPF128
        whole = self.both(x, x, tgt_mask=causal)  # error: TPF128
        source = self.both(x, x, mask, causal, src_is_causal=False)  # error: TPF128
        return given, made, inline, asked, decoded, whole, source


def encode(encoder: nn.TransformerEncoder, x: torch.Tensor, mask: torch.Tensor):
    return encoder(x.cuda(), mask)  # error: TPF128


class HandedOn(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4), 6)

    def forward(self, x: torch.Tensor, mask: Optional[torch.Tensor] = None, other: Optional[torch.Tensor] = None):
        if other is None:
            other = torch.zeros(8, 8, device=x.device)
        handed_on = self.encoder(x, mask=mask)  # audit: TPF128
        return handed_on, self.encoder(x, mask=other)  # error: TPF128


class HandedOnUntyped(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4), 6)

    def forward(self, x: torch.Tensor, mask=None):
        return self.encoder(x, mask=mask)  # audit: TPF128


# Look-alikes.


class Told(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4), 6)
        self.decoder = TransformerDecoder(TransformerDecoderLayer(64, 4), 2)
        self.both = nn.Transformer()

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        causal, other = self.encoder(x, mask=mask, is_causal=True), self.encoder(x, mask, None, False)
        decoded = self.decoder(x, x, tgt_mask=mask, tgt_is_causal=True)
        return causal, other, decoded, self.both(x, x, tgt_mask=mask, tgt_is_causal=True)


class WithoutMask(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4), 6)
        self.decoder = TransformerDecoder(TransformerDecoderLayer(64, 4), 2)

    def forward(self, x: torch.Tensor, padding: torch.Tensor, memory_mask: torch.Tensor):
        encoded = self.encoder(x, mask=None, src_key_padding_mask=padding)
        return self.decoder(x, encoded, memory_mask=memory_mask)


class Layers(nn.Module):
    """A layer takes its word for it: `is_causal` is False."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(64, 4)
        self.attention = nn.MultiheadAttention(64, 4)

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        return self.layer(x, src_mask=mask), self.attention(x, x, x, attn_mask=mask, need_weights=False)


class ForEachHead(nn.Module):
    """A mask of three dimensions is not compared."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4), 6)

    def forward(self, x: torch.Tensor):
        return self.encoder(x, mask=torch.zeros(8, 16, 16, device=x.device))


class Own(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        return x.masked_fill(mask, 0)


class WithOwn(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Own()

    def forward(self, x: torch.Tensor, mask: torch.Tensor, arguments: dict):
        return self.encoder(x, mask=mask)


def on_host():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4), 6)
    return encoder(torch.zeros(1, 8, 64), mask=torch.zeros(8, 8))
