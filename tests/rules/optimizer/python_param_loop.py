"""Loops over parameters: those that update them, and others."""

import torch
from torch import nn
from torch.utils.data import DataLoader


def train(model: nn.Module, average: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters()):  # audit: TPF603
                slow.mul_(0.99).add_(fast, alpha=0.01)


class Target(nn.Module):
    def __init__(self, online: nn.Module, target: nn.Module):
        super().__init__()
        self.online, self.target = online, target

    def forward(self, x):
        own = self.target.state_dict()
        for name, parameter in self.online.named_parameters():  # audit: TPF603
            slow = own[name]
            slow.lerp_(parameter, 0.01)
        return self.online(x)


class Descent(torch.optim.Optimizer):
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:  # audit: TPF603
                if p.grad is None:
                    continue
                grad = p.grad
                buffer = self.state[p]["momentum"]
                buffer.mul_(0.9).add_(grad)
                p.add_(buffer, alpha=-group["lr"])


def soft_update(target: nn.Module, online: nn.Module, tau: float) -> None:
    for old, new in zip(target.parameters(), online.parameters()):  # audit: TPF603
        old.data.copy_(old.data * (1.0 - tau) + new.data * tau)


class Clipped:
    def train(self, critic: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
        for x in loader:
            critic(x).mean().backward()
            optimizer.step()
            for p in critic.parameters():  # audit: TPF603
                p.data.clamp_(-0.01, 0.01)


def all_at_once(model: nn.Module, average: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    slow, fast = list(average.parameters()), list(model.parameters())
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
        torch._foreach_lerp_(slow, fast, 0.01)


def freeze(model: nn.Module) -> None:
    for p in model.parameters():
        p.requires_grad_(False)


def init_weights(model: nn.Module) -> None:
    for p in model.parameters():
        p.data.mul_(0.5)
        p.data.uniform_(-0.1, 0.1)


def copied_once(target: nn.Module, online: nn.Module) -> None:
    for old, new in zip(target.parameters(), online.parameters()):
        old.data.copy_(new.data)


def reads_only(model: nn.Module, loader: DataLoader, penalty: float) -> list[torch.Tensor]:
    losses = []
    for x in loader:
        total = torch.zeros((), device="cuda")
        for p in model.parameters():
            total = total + p.square().sum() * penalty
        losses.append(total)
    return losses


def sums_in_place(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    total = torch.zeros((), device="cuda")
    for x in loader:
        for p in model.parameters():
            total.add_(p.square().sum())
    return total


def over_other_things(layers: list[torch.Tensor], loader: DataLoader) -> None:
    for x in loader:
        for layer in layers:
            layer.mul_(0.9)
