"""Rows that are repeated, and what only `repeat` can do."""

import torch
from torch import nn


class Tokens(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.queries = nn.Embedding(100, width)
        self.register_buffer("table", torch.randn(1, 16, width))
        self.decoder = nn.Module()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch = x.shape[0]
        token = self.token.repeat(batch, 1, 1)  # audit: TPF212
        x = torch.cat((token, x), dim=1)
        x = x + self.table.repeat((batch, 1, 1))  # audit: TPF212
        queries = self.queries.weight.unsqueeze(0).repeat(batch, 1, 1)  # audit: TPF212
        return self.decoder(x, queries)


class Masks(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        heads = mask[:, None, None, :].repeat(1, 8, x.shape[1], 1)  # audit: TPF212
        scores = x.masked_fill(heads == 0, -1e9)
        best = torch.gather(x, 1, index.unsqueeze(-1).repeat(1, 1, x.shape[-1]))  # audit: TPF212
        mean = x.mean(dim=-1, keepdim=True)
        centred = x - mean.tile(1, 1, 768)  # audit: TPF212
        return scores, best, centred


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, 12, 256, 256))

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        bias = self.bias.repeat(query.shape[0], 1, 1, 1)  # error: TPF212
        return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)

    def attend(self, scores: torch.Tensor, value: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(scores + self.bias[0].repeat(len(value), 1, 1, 1), -1)  # error: TPF212
        return weights @ value + row[None].repeat(4, 1)  # audit: TPF212


def grid(x: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    rows = torch.arange(8, device=x.device)
    rows = rows.repeat(8, 1).T  # audit: TPF212
    corners = torch.tensor([[[0, 0], [1, 0]]], device=x.device).repeat(x.shape[0], 1, 1)  # audit: TPF212
    eye = torch.eye(3, device=x.device).repeat(*shape, 1, 1) * 2  # audit: TPF212
    return moved(x, corners) + rows, eye


def moved(x: torch.Tensor, corners: torch.Tensor) -> torch.Tensor:
    return x - corners.float()


def padded(x: torch.Tensor, wanted: int) -> torch.Tensor:
    end = x[:, -1:, :].repeat(1, wanted - x.shape[1], 1)  # audit: TPF212
    return torch.cat([x, end], dim=1) @ x[..., None, :].repeat(1, 1, 4, 1)  # audit: TPF212


class Written(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 1, 768))
        self.tokens = nn.Parameter(torch.zeros(1, 1, 768).repeat(4, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.token.repeat(x.shape[0], 1, 1)
        first[:, 0] = x[:, 0]
        second = self.token.repeat(x.shape[0], 1, 1)
        second += x
        third = self.token.repeat(x.shape[0], 1, 1)
        third.mul_(x)
        fourth = self.token.repeat(x.shape[0], 1, 1)
        parts = fourth.transpose(0, 1)
        parts.clamp_(0)
        fifth = changed(self.token.repeat(x.shape[0], 1, 1))
        return x + first, second, third, x * fourth, fifth + x


def changed(x: torch.Tensor) -> torch.Tensor:
    x -= 1
    return x * 2


class LaidOut(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        keys = x.unsqueeze(2).repeat(1, 1, 4, 1).view(x.shape[0], -1, x.shape[-1])
        values = x[:, None].repeat(1, 4, 1, 1).flatten(0, 1)
        return keys + 1, values * 2, x[None].repeat(3, 1, 1, 1).contiguous() + 1


class Kept(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.first = x[None].repeat(3, 1, 1)
        both = {"rows": x[:, None].repeat(1, 3, 1)}
        return both, x[:1].repeat(4, 1)


def tiled(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Sizes that are not 1, or that nobody knows."""
    rows = torch.arange(8, device=x.device).repeat(4) + 1
    return rows, x.repeat(2, 1) + 1, torch.zeros(2, 1).repeat(2, 3) + 1, x[:, None].repeat(2, 3, 1) + 1, x.repeat(1, 1)


def of_unknown_rank(make, x: torch.Tensor) -> torch.Tensor:
    grid = make(8)
    grid = grid - torch.tensor([1.0, 2.0])
    cast = (grid * 2).float()
    return torch.cat([x, grid.repeat(4, 1, 1, 1)]), cast.repeat(4, 1) + x


def other_things(names: list, frame) -> object:
    return names.repeat(3, 1), frame[None].repeat(2, 1) + 1


def later(x: torch.Tensor) -> torch.Tensor:
    rows = x[None].repeat(4, 1, 1)
    return lambda scale: rows * scale


class InALoop(nn.Module):
    def forward(self, x: torch.Tensor, steps: int) -> torch.Tensor:
        total = x[None] * 0
        for _ in range(steps):
            total.add_(1)
            total = x[None].repeat(4, 1, 1)
        return x


class Stepped(nn.Module):
    """A method writes to the first token while it is in use; no code in sight writes to the other one."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        self.other = nn.Parameter(torch.zeros(1, 1, 8))
        self.embed = nn.Linear(8, 8)

    def bump(self) -> None:
        with torch.no_grad():
            self.token.add_(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.token.repeat(len(x), 1, 1)  # audit: TPF212
        self.bump()
        second = self.other.repeat(len(x), 1, 1)  # audit: TPF212
        return torch.cat([first, second, self.embed(x)], dim=1)


def stepped(x: torch.Tensor) -> torch.Tensor:
    row = torch.ones(1, 8, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([row], lr=0.1)
    rows = row.repeat(4, 1)  # audit: TPF212
    optimizer.step()
    return torch.cat([rows, x])


def written_before_it_is_read(x: torch.Tensor) -> torch.Tensor:
    row = torch.ones(1, 8, device="cuda")
    rows = row.repeat(4, 1)
    row.add_(1)
    return torch.cat([rows, x])


def with_a_mapping(x: torch.Tensor, options: dict[str, torch.Tensor]) -> torch.Tensor:
    rows = x[None].repeat(len(x), 1, 1)  # audit: TPF212
    masks = masked(x, **options)
    return torch.cat([rows, masks])


def masked(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return x * scale


class Dictionary(torch.nn.Module):
    # A loop carries the rows on: where they lead comes back to where they began.

    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Parameter(torch.randn(64, 96))
        self.layers = torch.nn.ModuleList(Layer() for _ in range(4))

    def forward(self, x):
        tokens = self.tokens.repeat((x.shape[0], 1, 1))  # audit: TPF212
        for layer in self.layers:
            x, tokens = layer(x, tokens)
        return x
