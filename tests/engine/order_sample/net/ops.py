import torch

from . import layers

DEVICE = torch.device("cuda")


def remote(function):
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


def scale(x):
    return x.abs().max().item()


@remote
def pooled(x):
    return x.mean(dim=(2, 3))


@remote
def zeros(count):
    return torch.zeros(count, device=DEVICE)


def clip(model):
    total = 0.0
    for parameter in model.parameters():
        total += parameter.grad.norm().item()
    return total


def is_block(module):
    return isinstance(module, layers.Block)


def adder(x):
    held = x * 2

    def inner():
        return held

    return inner
