"""A small image classifier: convolutions, then attention over the remaining positions."""

import torch
from torch import nn


class ConvBlock(nn.Module):
    """Convolution, normalisation, activation; halves the resolution."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel_size=3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(outputs)
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(self.norm(self.conv(x)))


class Classifier(nn.Module):
    """Images of 3 × 64 × 64 in, scores of 200 classes out."""

    def __init__(self, width: int = 250, classes: int = 200) -> None:
        super().__init__()
        self.stem = nn.Sequential(ConvBlock(3, 64), ConvBlock(64, 128), ConvBlock(128, width))
        self.position = nn.Parameter(torch.zeros(1, 64, width))
        self.attention = nn.MultiheadAttention(width, num_heads=5, batch_first=True)
        self.hidden = nn.Linear(width, 1021)
        self.head = nn.Linear(1021, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.stem(images).flatten(2).transpose(1, 2) + self.position
        attended, _ = self.attention(x, x, x)
        pooled = (x + attended).mean(dim=1)
        return self.head(torch.relu(self.hidden(pooled)))
