from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    vocabulary: int = 32003
    width: int = 768


class Untied(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(50304, 768)
        self.head = nn.Linear(768, 50304, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return self.head(self.tokens(ids))


class Plain:
    entries = 21139
    height = 33333
    rows = 33331


class ByField(nn.Module):
    def __init__(self, config):
        super().__init__()
        config.height = 40000
        self.head = nn.Linear(config.width, config.entries)
        self.other = nn.Linear(config.width, config.height)
        self.bag = nn.EmbeddingBag(config.rows, 64)


def head(width: int, *, vocabulary: int = 11113) -> nn.Module:
    return nn.Linear(width, vocabulary)


class ByDefault(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.head = nn.Linear(config.width, config.vocabulary)
        self.head.weight = self.tokens.weight


class Tied(nn.Module):
    def __init__(self, size: int = 40000 + 1):
        super().__init__()
        self.tokens = nn.Embedding(30528, 512)
        self.words = nn.Embedding(num_embeddings=21184, embedding_dim=512)
        self.alone = nn.Embedding(119547, 512)
        self.other = nn.Linear(512, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.tokens.weight).sum() + (x @ self.words.weight.T).sum() + self.other(self.alone(x)).sum()


# Look-alikes.


class Padded(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(50304, 768)
        self.head = nn.Linear(768, 50304)
        self.smaller = nn.Linear(768, 50264)


class SmallTables(nn.Module):
    def __init__(self):
        super().__init__()
        self.positions = nn.Embedding(1025, 768)
        self.types = nn.Embedding(2, 768)
        self.classes = nn.Linear(768, 1001)


class AtRunTime(nn.Module):
    def __init__(self, tokenizer, size: int):
        super().__init__()
        self.tokens = nn.Embedding(len(tokenizer), 768)
        self.head = nn.Linear(768, size)


class PadsItself(nn.Module):
    def __init__(self, size: int = 50258):
        super().__init__()
        rows = (size + 63) // 64 * 64
        self.tokens = nn.Embedding(rows, 768)
        self.head = nn.Linear(768, rows)


def is_special(token: int) -> bool:
    return token >= 50256


class WideInput(nn.Module):
    """The input of a first layer is no vocabulary that is multiplied out."""

    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(50001, 64)
        self.counts = nn.Linear(8192, 64)
