"""Recurrent layers in compiled code."""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, bidirectional: bool = True) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 8, bidirectional=bidirectional)
        self.gru = nn.GRU(16, 8)
        self.rnn = nn.RNN(8, 8)
        self.cell = nn.LSTMCell(8, 8)
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.lstm(x)  # audit: TPF707
        hidden = self.gru(hidden)[0]  # audit: TPF707
        return self.head(self.rnn(hidden)[0])  # audit: TPF707


model = torch.compile(Tagger())


# Look-alikes


class Eager(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


class Cells(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cell(x)[0]


cells = torch.compile(Cells())


class Kept(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 8)

    @torch.compiler.disable
    def recur(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.recur(x) * 2


kept = torch.compile(Kept())


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.TransformerEncoderLayer(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x)


attention = torch.compile(Attention())


def encode(x: torch.Tensor) -> torch.Tensor:
    lstm = nn.LSTM(8, 8)
    return lstm(x)[0]
