"""Makes each fact about torch.compile and captures of CUDA graphs happen once."""

import torch
import torch._dynamo
from torch import nn

torch._dynamo.config.suppress_errors = True


@torch.compile  # fact: compile.called
def whole(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + 1  # fact: compile.traced


@torch.compile
def loop(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        print("in a loop")  # fact: compile.gave-up
        x = x + 1
    return x


@torch.compile(backend=lambda graph, inputs: 1 / 0)
def fails(x: torch.Tensor) -> torch.Tensor:
    return x + 1  # fact: compile.failed


@torch.compile(mode="reduce-overhead")
def mutates(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)  # fact: cudagraph.skipped
    return x * 2


net = nn.Linear(4, 4).cuda()
optimizer = torch.optim.Adam(net.parameters())
torch.compile(net)  # fact: compile.unused
for step in range(4):
    x = torch.ones(2 + step % 2, 4, device="cuda")  # fact: compile.recompiled
    y = whole(x) + loop(x) + fails(x) + mutates(x.clone())
    net(y).sum().backward()
    optimizer.step()
static = torch.ones(2, 4, device="cuda")
with torch.cuda.graph(torch.cuda.CUDAGraph()):  # fact: capture.done
    out = static * 2
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):  # fact: capture.failed
        number = static.sum().item()  # fact: capture.raised
except RuntimeError as error:
    print(error)
