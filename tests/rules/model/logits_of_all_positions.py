"""Linear layers after which one position of all is used, and others."""

import torch
from torch import nn


class Language(nn.Module):
    def __init__(self, body: nn.Module, dim: int = 2048, vocabulary: int = 128256):
        super().__init__()
        self.body, self.head, self.dim = body, nn.Linear(dim, vocabulary, bias=False), dim

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.body(ids))  # error: TPF313
        return logits[:, -1, :]

    @torch.no_grad()
    def next(self, ids: torch.Tensor, temperature: float) -> torch.Tensor:
        logits = self.head(self.body(ids)).float()  # error: TPF313
        probabilities = torch.softmax(logits[:, -1] / temperature, dim=-1)
        return torch.multinomial(probabilities, 1)

    def best(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(ids))[:, -1:].argmax(-1)  # error: TPF313

    def tied(self, ids: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(self.body(ids), self.head.weight)[..., -1, :]  # error: TPF313


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.LSTM(16, 64, batch_first=True), nn.Linear(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, _ = self.rnn(x)
        return self.out(h)[:, -1, :]  # audit: TPF313


# Look-alikes


class First(Language):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(ids)[:, -1])


class Trained(Language):
    def forward(self, ids: torch.Tensor, labels: torch.Tensor):
        logits = self.head(self.body(ids))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return loss, logits[:, -1, :]


class Features(nn.Module):
    """Rows and columns: `-1` is a column."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(x)[:, -1]


class Moments(nn.Module):
    """A few more outputs than inputs: the last is a deviation."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(x)[:, -1].exp()


class Whole(Language):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.body(ids))
        return logits if self.training else logits[:, -1, :]


class Others(Language):
    def forward(self, ids: torch.Tensor, at: int) -> torch.Tensor:
        return self.head(self.body(ids))[:, at, :] + self.head(self.body(ids))[:, 0, :]


class OfABlock(Language):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Attention needs all positions."""
        return self.body(ids)[:, -1, :]


class Complete(nn.Module):
    def __init__(self, body: nn.Module, width: int):
        super().__init__()
        self.body, self.head = body, nn.Linear(width, 50304, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.body(ids))
        return logits

    @torch.inference_mode()
    def next(self, ids: torch.Tensor) -> torch.Tensor:
        return self(ids)[:, -1].argmax(-1)  # error: TPF313

    def loss(self, ids: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(self(ids).flatten(0, 1), ids.flatten())


class OnlyTheLast(Complete):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(ids)[:, -1:])

    def next(self, ids: torch.Tensor) -> torch.Tensor:
        return self(ids)[:, -1].argmax(-1)
