import torch
from torch import nn

from . import ops
from .registry import build, register


@register("block")
class Block(nn.Module):
    def __init__(self, width=1021):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3)
        self.norm = nn.BatchNorm2d(width)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.norm(self.conv(x))
        return self.head(ops.pooled(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = build("block")
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        if ops.scale(x) > 1:
            x = x / 2
        self.seen += x.shape[0]
        return self.block(x)
