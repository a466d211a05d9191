import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width: int, heads: int = 8):
        super().__init__()
        self.plain = nn.MultiheadAttention(width, heads, batch_first=True)
        self.explicit = nn.MultiheadAttention(width, heads, dropout=0.0)
        self.dropping = nn.MultiheadAttention(width, heads, dropout=0.1)
        self.stack = nn.ModuleList(nn.MultiheadAttention(width, heads) for _ in range(4))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        y, _ = self.plain(x, x, x, need_weights=False)
        y = y + self.explicit(x, x, x, need_weights=False)[0]
        z, weights = self.dropping(x, x, x, need_weights=False)
        z = z + self.plain(x, x, x, mask, need_weights=False)[0]
        z = z + self.plain(x, x, x, None, False)[0]
        pair = self.plain(
            x,
            x,
            x,  # the values
            attn_mask=mask,
            need_weights=False,
        )
        for attention in self.stack:
            y, *_ = attention(query=x, key=y, value=z, need_weights=False)
        return y + z + pair[0]


def serve(model: Block, x: torch.Tensor) -> torch.Tensor:
    model.eval()
    return model.dropping(x, x, x, need_weights=False)[0]


def may_serve(model: Block, x: torch.Tensor, evaluate: bool) -> torch.Tensor:
    if evaluate:
        model.eval()
    return model.dropping(x, x, x, need_weights=False)[0]


# Look-alikes.


class Reads(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 8)
        self.maps: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, weights = self.attention(x, x, x)
        self.maps.append(weights)
        z, _ = self.attention(y, y, y)
        self.maps.append(_)
        pair = self.attention(z, z, z)
        self.maps.append(pair[1])
        return y + pair[0], self.attention(x, x, x)[1]


class Asks(nn.Module):
    def __init__(self, width: int, show: bool):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 8)
        self.show = show

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.attention(x, x, x, need_weights=False)
        z, _ = self.attention(x, x, x, None, False)
        w, _ = self.attention(x, x, x, need_weights=self.show)
        return y + z + w


class HandsOn(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 8)

    def forward(self, x: torch.Tensor, **options: bool) -> tuple[torch.Tensor, torch.Tensor]:
        y, _ = self.attention(x, x, x, **options)
        return self.attention(y, y, y)


class Weighted(nn.MultiheadAttention):
    def forward(self, query, key, value):
        return query, key, value


class OwnAttention(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.attention = Weighted(width, 8)
        self.recurrent = nn.LSTM(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.recurrent(x)
        return y + self.attention(x, x, x)[0]


def functional(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    out, _ = F.scaled_dot_product_attention(q, k, v), None
    return out


class KeepsThem(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, self.weights = self.attention(x, x, x)
        return y
