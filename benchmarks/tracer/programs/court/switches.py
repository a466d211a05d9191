"""Makes each fact about switches and debugging happen once."""

import os

os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  # fact: launches.blocking

import torch
from torch import nn
from torch.autograd import gradcheck
from torch.autograd.profiler import emit_nvtx

net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 2)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(2, 3, 4, 4, device="cuda")


def step() -> None:
    net(x).sum().backward()
    optimizer.step()


for _ in range(3):
    step()  # fact: cudnn.on, algorithms.any, float32.exact, backward.plain
    torch.nn.functional.conv2d(x, net[0].weight)  # fact: convolution.called
torch.backends.cudnn.enabled = False  # fact: cudnn.off
torch.backends.cudnn.benchmark = True  # fact: cudnn.benchmark
torch.set_float32_matmul_precision("high")  # fact: float32.tf32
for _ in range(2):
    step()
torch.backends.cudnn.enabled = True
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
torch.use_deterministic_algorithms(True, warn_only=True)  # fact: algorithms.deterministic
with torch.autograd.detect_anomaly():  # fact: anomaly.backward
    step()
with torch.autograd.detect_anomaly(check_nan=False):  # fact: anomaly.unchecked
    step()
with emit_nvtx():  # fact: ranges.recorded
    step()
gradcheck(torch.sin, (torch.ones(1, dtype=torch.float64, requires_grad=True),))  # fact: gradients.checked
step()
