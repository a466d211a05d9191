"""Capturable optimizers in a file that captures nothing."""

import torch
from torch import nn, optim


def alone(model: nn.Module):
    return torch.optim.Adam(model.parameters(), capturable=True)  # error: TPF607


def with_others(model: nn.Module):
    return optim.AdamW(capturable=True, params=model.parameters(), lr=1e-3)  # error: TPF607


class Learner:
    def __init__(self, net: nn.Module):
        self.optimizer = optim.NAdam(  # error: TPF607
            net.parameters(),
            lr=1e-3,
            capturable=True,
        )


def by_default(model: nn.Module):
    return optim.Adam(model.parameters())


def turned_off(model: nn.Module):
    return optim.Adam(model.parameters(), capturable=False)


def as_the_user_says(model: nn.Module, graphs: bool):
    return optim.Adam(model.parameters(), capturable=graphs)


def fused(model: nn.Module):
    return optim.Adam(model.parameters(), capturable=True, fused=True)


def of_another_library(model: nn.Module, library):
    return library.Adam(model.parameters(), capturable=True)


def another_argument(model: nn.Module):
    return optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
