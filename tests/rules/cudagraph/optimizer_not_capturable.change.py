"""Optimizers that count on the host, and on the device."""

import torch
from torch import nn


def trained(steps: int, record: bool):
    model = nn.Linear(33, 5).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(7, 33, device="cuda")).square().mean().backward()
        optimizer.step()
    if record:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            optimizer.step()
    return model.weight.detach(), optimizer.state_dict()


def case_outside():
    weight, state = trained(5, record=False)
    return {"weight": weight, "steps": [one["step"] for one in state["state"].values()]}


def change_outside(weight, steps):
    """the counters are tensors on the GPU, in checkpoints too, the update is computed with tensors in another order of rounding"""
    torch.testing.assert_close(*weight)
    assert {one.device.type for one in steps[0]} == {"cpu"} and {one.device.type for one in steps[1]} == {"cuda"}
    assert [one.item() for one in steps[0]] == [one.item() for one in steps[1]]


def case_recorded():
    trained(1, record=True)
    return {}


def change_recorded(error):
    """recording the step no longer raises"""
    assert "Attempting CUDA graph capture of step()" in error[0] and error[1] is None
