"""Capturable optimizers in a file that captures nothing."""

import torch
from torch import nn, optim


def alone(model: nn.Module):
    return torch.optim.Adam(model.parameters())


def with_others(model: nn.Module):
    return optim.AdamW(params=model.parameters(), lr=1e-3)


class Learner:
    def __init__(self, net: nn.Module):
        self.optimizer = optim.NAdam(
            net.parameters(),
            lr=1e-3,
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


def rate_as_a_tensor(model: nn.Module):
    return optim.AdamW(model.parameters(), lr=torch.tensor(1e-3), capturable=True, foreach=True)


def rate_by_name(model: nn.Module):
    rate = torch.full((), 1e-3, device="cuda")
    return optim.NAdam(model.parameters(), rate, capturable=True)


def averages_as_tensors(model: nn.Module):
    betas = torch.tensor(0.9), torch.tensor(0.99)
    return optim.Adam(model.parameters(), 1e-3, betas, capturable=True)


def rate_of_a_group(model: nn.Module):
    groups = [{"params": model.parameters(), "lr": torch.tensor(1e-3)}]
    return optim.Adam(groups, capturable=True)


def rate_of_a_group_as_a_number(model: nn.Module):
    groups = [{"params": model.parameters(), "lr": 1e-3}]
    return optim.Adam(groups)
