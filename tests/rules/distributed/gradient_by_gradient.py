"""Gradients that each process reduces, and other tensors."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


def train(model: nn.Module, loader, optimizer: torch.optim.Optimizer):
    for x, y in loader:
        F.cross_entropy(model(x.cuda()), y.cuda()).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)  # audit: TPF928
            p.grad /= dist.get_world_size()
        optimizer.step()


def average(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter.grad is not None:
            dist.all_reduce(parameter.grad.data, op=dist.ReduceOp.SUM)  # audit: TPF928
            parameter.grad.data /= dist.get_world_size()


def in_a_list(model: nn.Module) -> None:
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    for gradient in gradients:
        dist.all_reduce(gradient, async_op=True)  # audit: TPF928


def of_groups(optimizer: torch.optim.Optimizer) -> None:
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.grad is None:
                continue
            dist.all_reduce(p.grad)  # audit: TPF928


# Look-alikes


def at_once(model: nn.Module) -> None:
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat)


def of_some(model: nn.Module) -> None:
    for name, p in model.named_parameters():
        if "norm" in name:
            dist.all_reduce(p.grad)


def marked(model: nn.Module, group) -> None:
    for p in model.parameters():
        if getattr(p, "is_replicated", False):
            dist.all_reduce(p.grad, group=group)


def of_buckets(buckets: list[torch.Tensor]) -> None:
    for bucket in buckets:
        dist.all_reduce(bucket)


def of_one(head: nn.Linear) -> None:
    dist.all_reduce(head.weight.grad)


def sent(model: nn.Module) -> None:
    for p in model.parameters():
        dist.broadcast(p.data, src=0)


def reduced(gradients, world: int):
    for gradient in gradients:
        gradient.div_(world)
        dist.all_reduce(gradient)  # audit: TPF928


def with_a_list(model: nn.Module, loader, optimizer: torch.optim.Optimizer):
    for x in loader:
        model(x.cuda()).sum().backward()
        reduced([p.grad for p in model.parameters()], dist.get_world_size())
        optimizer.step()
