"""Convolutions of 60 channels with biases before batch norms, in training under autocast and channels_last."""

import torch
from _common import main
from torch import nn


def build(change: str):
    width = 64 if change == "channel-multiples" else 60
    bias = change != "bias-before-norm"
    layers = []
    for _ in range(12):
        layers += [nn.Conv2d(width, width, 3, padding=1, bias=bias), nn.BatchNorm2d(width), nn.ReLU()]
    first = nn.Conv2d(3, width, 3, padding=1, bias=bias)
    last = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))
    model = nn.Sequential(first, nn.BatchNorm2d(width), *layers, *last).cuda().to(memory_format=torch.channels_last)
    images = torch.randn(64, 3, 64, 64, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (64,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()

    return step


if __name__ == "__main__":
    main(build)
