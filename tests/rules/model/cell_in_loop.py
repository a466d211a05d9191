"""Recurrent cells in loops over sequences, and loops that have to be."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.cell = nn.LSTMCell(width, width)
        self.second = nn.GRUCell(width, width)
        self.embed, self.out = nn.Embedding(100, width), nn.Linear(width, 100)
        self.norm = nn.LayerNorm(width)

    def over_steps(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        found = []
        for t in range(x.size(1)):
            h, c = self.cell(x[:, t], (h, c))  # error: TPF304
            found.append(self.out(h))
        return torch.stack(found, dim=1)

    def over_parts(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        for row in x.unbind(1):
            row = torch.relu(row)
            h = self.second(row, h)  # error: TPF304
        return h

    def teacher_forced(self, words: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        embedded = self.embed(words)
        scores = []
        for i, word in enumerate(embedded):
            given = word + 1
            h = self.second(given, h)  # error: TPF304
            scores.append(self.out(h).argmax(-1))
        return torch.stack(scores)


# Look-alikes


def fed_back(cell: nn.GRUCell, out: nn.Linear, norm: nn.LayerNorm, word: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    for _ in range(10):
        h = cell(word.float(), h)
        word = out(h).argmax(-1)
    return h


def attending(cell: nn.GRUCell, out: nn.Linear, norm: nn.LayerNorm, x: torch.Tensor, memory: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    for row in x:
        context = torch.softmax(memory @ h[..., None], dim=-2).squeeze(-1) @ memory
        h = cell(row + context, h)
    return h


def masked(cell: nn.GRUCell, out: nn.Linear, norm: nn.LayerNorm, x: torch.Tensor, mask: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    for t in range(x.size(1)):
        new = cell(x[:, t], h)
        h = torch.where(mask[:, t, None], new, h)
    return h


def normalised(cell: nn.GRUCell, out: nn.Linear, norm: nn.LayerNorm, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    for row in x:
        h = cell(row, h)
        h = norm(h)
    return h


def until(cell: nn.GRUCell, out: nn.Linear, norm: nn.LayerNorm, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    for row in x:
        h = cell(row, h)
        if out(h).argmax() == 0:
            break
    return h


def one_step(cell: nn.GRUCell, out: nn.Linear, norm: nn.LayerNorm, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    return cell(x, h)


def each_layer(cell: nn.GRUCell, out: nn.Linear, norm: nn.LayerNorm, x: torch.Tensor, states: list[torch.Tensor]) -> torch.Tensor:
    for state in states:
        x = cell(x, state)
    return x


def sometimes(cell: nn.GRUCell, out: nn.Linear, norm: nn.LayerNorm, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    for t in range(x.size(1)):
        if t % 2 == 0:
            h = cell(x[:, t], h)
    return h


def whole(layer: nn.LSTM, x: torch.Tensor) -> torch.Tensor:
    return layer(x)[0]
