"""A loop that collects garbage, and one that does not."""

import gc
import weakref

import torch
from torch import nn


class Loop:
    def __init__(self, tensor):
        self.tensor, self.itself = tensor, self


def in_a_circle(tensor):
    return weakref.ref(Loop(tensor))


def train(model: nn.Module, batches):
    alive = []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in batches:
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        alive.append(in_a_circle(loss))
        torch.cuda.empty_cache()
        gc.collect()
    return sum(one() is not None for one in alive)


def case_memory():
    model = nn.Linear(3, 2).cuda()
    gc.collect()
    gc.disable()
    try:
        return {"held": train(model, [torch.ones(4, 3)] * 3), "model": model}
    finally:
        gc.enable()


def change_memory(held):
    """the process holds more memory at its peak"""
    assert held == (0, 3)
