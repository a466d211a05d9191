"""Groups of optimizers."""

import torch
from torch import nn


def build(model: nn.Module):
    groups = [{"params": [p], "weight_decay": 0.0 if p.ndim < 2 else 0.1} for p in model.parameters()]  # error: TPF609
    return torch.optim.AdamW(groups, lr=1e-3, fused=True)


def by_name(model: nn.Module, rate: float):
    groups = []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        scale = 0.1 if name.startswith("backbone") else 1.0
        groups.append({"params": parameter, "lr": rate * scale})  # error: TPF609
    return torch.optim.AdamW(groups)


def of_a_list(model: nn.Module):
    named = list(model.named_parameters())
    return torch.optim.SGD([{"params": [p], "name": n} for n, p in named], lr=0.1)  # error: TPF609


def in_hooks(model: nn.Module):
    return {p: torch.optim.AdamW([p], fused=True) for p in model.parameters()}  # error: TPF609


# Look-alikes


def in_two(model: nn.Module):
    flat = [p for p in model.parameters() if p.ndim < 2]
    return torch.optim.AdamW([{"params": flat, "weight_decay": 0.0}, {"params": [p for p in model.parameters()]}])


def all_in_one(model: nn.Module):
    return torch.optim.AdamW(model.parameters())


def of_modules(model: nn.Module):
    return torch.optim.AdamW([{"params": module.parameters()} for module in model.children()])


def of_layers(layers: nn.ModuleList, rate: float):
    groups = []
    for depth, layer in enumerate(layers):
        parameters = list(layer.parameters())
        groups.append({"params": parameters, "lr": rate * 0.9**depth})
    return torch.optim.AdamW(groups)


def of_one_tensor(latent: torch.Tensor):
    return torch.optim.Adam([latent], lr=0.1)


def shapes(model: nn.Module):
    return [{"name": name, "shape": p.shape} for name, p in model.named_parameters()]


def by_depth(model: nn.Module, rate: float):
    groups = []
    for name, p in model.named_parameters():
        depth = name.count(".")
        groups.append(dict(params=p, lr=rate * 0.9**depth))  # error: TPF609
    return torch.optim.AdamW(groups + [p for p in model.parameters() if not p.requires_grad])


def of_layers_by_name(layers: nn.ModuleList, rate: float):
    groups = []
    for depth, layer in enumerate(layers):
        groups.append(dict(params=[*layer.parameters()], lr=rate * 0.9**depth))
    return torch.optim.AdamW(groups)
