"""Models: 8 problems that tuning guides name, and look-alikes that cost nothing."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 64, 3, padding=1)  # problem: a bias that the norm removes
        self.norm = nn.BatchNorm2d(64)
        self.second = nn.Conv2d(64, 64, 3, padding=1)  # fine
        self.head = nn.Linear(64, 10)
        self.register_buffer("shift", torch.zeros(64, 1, 1))  # fine

    def forward(self, images):
        x = F.relu(self.norm(self.first(images)))
        x = F.relu(self.second(x) + self.shift)
        return self.head(x.mean((2, 3)))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(50257, 512)  # fine
        self.out = nn.Linear(512, 50257, bias=False)  # problem: a size that is not a multiple of 8
        self.query = nn.Linear(512, 512)
        self.block = nn.Linear(512, 512)
        self.scale = torch.tensor(1 / math.sqrt(512)).item()  # fine

    def attention(self, x):
        scores = self.query(x) @ x.transpose(-2, -1) * self.scale
        return torch.softmax(scores, dim=-1) @ x  # problem: attention by hand

    def forward(self, x):
        x = self.attention(x)
        if (x > 1e4).any():  # problem: a test of a GPU value in forward
            x = x.clamp(max=1e4)
        steps = torch.arange(x.shape[1]).to(x.device)  # problem: made on the CPU, then copied
        x = x + torch.sin(steps / 1e4)[None, :, None]
        x = checkpoint(self.block, x)  # problem: the mode of checkpoints is not named
        x = checkpoint(self.block, x, use_reentrant=False)  # fine
        return self.out(x)


def decode(model: Encoder, x: torch.Tensor, length: int):
    tokens = torch.zeros(1, 0, dtype=torch.long, device="cuda")
    for _ in range(length):
        token = model(x).argmax(-1)[:, -1:]
        tokens = torch.cat([tokens, token], dim=1)  # problem: a tensor that grows by copies
        if token.item() == 0:  # problem: a wait for each token
            break
    return tokens


def lengths(rows: list[list[int]]):
    longest = max(len(row) for row in rows)
    padded = [row + [0] * (longest - len(row)) for row in rows]  # fine
    return torch.tensor(padded, dtype=torch.long)  # fine
