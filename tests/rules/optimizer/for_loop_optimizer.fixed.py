"""Optimizers by how many kernels they take."""

import torch
from torch import nn, optim
from torch.optim import SGD, AdamW


def looped(model: nn.Module):
    return torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)


def looped_of_others(net: nn.Module):
    first = optim.RMSprop(net.parameters(), lr=1e-2)
    second = SGD(
        net.parameters(),
        lr=0.1,
        fused=True,
        momentum=0.9,
    )
    return first, second


def looped_of_unknown_parameters(parameters, settings):
    return AdamW(parameters, foreach=False, **settings)


class Learner:
    def __init__(self, net: nn.Module):
        self.optimizer = optim.NAdam(params=net.parameters())


def without_fused(model: nn.Module):
    return AdamW(model.parameters(), lr=1e-3, fused=True)


def without_fused_in_groups(model: nn.Module):
    decay = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return AdamW(groups, lr=1e-3, fused=True)


def without_fused_of_few_kernels(model: nn.Module):
    return SGD(model.parameters(), lr=0.1, fused=True)


def on_the_device():
    weights = [torch.zeros(8, device="cuda", requires_grad=True) for _ in range(3)]
    return optim.Adam(weights, fused=True)


def of_one_number():
    temperature = torch.zeros((), device="cuda", requires_grad=True)
    return optim.Adam([temperature])


def fused(model: nn.Module):
    return torch.optim.Adam(model.parameters(), fused=True)


def fused_as_asked_for(model: nn.Module, device: torch.device):
    return AdamW(model.parameters(), fused=device.type == "cuda", foreach=False)


def chosen_by_the_user(model: nn.Module, foreach: bool):
    return AdamW(model.parameters(), foreach=foreach)


def on_the_host():
    weight = torch.zeros(8, requires_grad=True)
    return optim.Adam([weight], foreach=False)


def differentiable(model: nn.Module):
    return SGD(model.parameters(), lr=0.1, differentiable=True, foreach=False)


def no_fused_form(model: nn.Module):
    return optim.Adadelta(model.parameters()), optim.LBFGS(model.parameters())


def of_another_library(model: nn.Module, library):
    return library.Adam(model.parameters(), foreach=False)


def without_fused_adagrad(model: nn.Module):
    return torch.optim.Adagrad(model.parameters(), lr=0.1, fused=True)


def in_a_compiled_closure(model: nn.Module, loader):
    optimizer = optim.Adamax(model.cuda().parameters(), foreach=False)

    @torch.compile(fullgraph=False)
    def step():
        optimizer.step()

    for x in loader:
        model(x.cuda()).mean().backward()
        step()


def in_groups(model: nn.Module, rate: float):
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() < 2]
    return torch.optim.AdamW(
        [dict(params=decayed), dict(params=others, weight_decay=0.0)], lr=rate, fused=True
    )


def compared(model: nn.Module):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.optim.AdamW(model.to(device).parameters(), fused=device == "cuda")


def compared_by_type(model: nn.Module):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.optim.AdamW(model.to(device).parameters(), fused=device.type == "cuda")


def compared_text(model: nn.Module):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.optim.AdamW(model.to(device).parameters(), fused=device == "cuda")


def compared_with_a_device_of_others(model: nn.Module, device):
    return torch.optim.AdamW(model.to(device).parameters(), fused=device == "cuda")
