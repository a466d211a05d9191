"""Small layers, one after the other: the GPU waits for launches."""

import torch
from _common import main
from torch import nn


def build(change: str):
    layers = [layer for _ in range(24) for layer in (nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU())]
    model = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.Adam(model.parameters(), fused=True if change == "fused-optimizer" else None)
    given = torch.randn(128, 256, device="cuda")
    call = torch.compile(model) if change == "compile" else model
    if change == "graphed-callables":
        call = torch.cuda.make_graphed_callables(model, (given,))

    def step():
        optimizer.zero_grad()
        call(given).square().mean().backward()
        optimizer.step()

    return step


if __name__ == "__main__":
    main(build)
