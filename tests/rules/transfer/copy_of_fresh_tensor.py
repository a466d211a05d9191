"""Copies of what is fresh, and of what is shared."""

import torch
from torch import nn


class Sums(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        total = (x + 2 * y).clone()  # audit: TPF211
        return total - (x @ y.mT).clone()  # audit: TPF211


class Joined(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        both = torch.cat(  # audit: TPF211
            [x, y],  # side by side
            dim=1,
        ).clone()
        chosen = torch.where(mask, x, y).clone().detach()  # audit: TPF211
        return both, chosen


def masks(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(x).clone()  # audit: TPF211


class Shared(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.detach().clone() + x.view(-1).clone() + x[0].clone() + x.expand(2, -1).clone()


class KeptForBackward(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.exp().clone().add_(1) + torch.softmax(x, -1).clone().mul_(2)


class OtherLayout(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + 1).clone(memory_format=torch.contiguous_format)


def leaves(n: int) -> torch.Tensor:
    return torch.zeros(n, requires_grad=True).clone()


def other_things(settings, frame) -> object:
    return settings.clone(), (frame + 1).clone()


class OfANumber(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        return torch.cat([x, x], out=out).clone(), x.clone()


class Wrapped:
    def __init__(self, held: torch.Tensor) -> None:
        self.held = held

    def __add__(self, other: object) -> torch.Tensor:
        return self.held


def added_by_another_class(x: torch.Tensor) -> torch.Tensor:
    return (Wrapped(x) + x).clone()


class Brackets(nn.Module):
    """Brackets that only the method needed go."""

    def forward(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        total = (x @ weight).clone()  # audit: TPF211
        double = (x @ weight).clone() * 2  # audit: TPF211
        chained = torch.cat([x, total, double])
        several = (  # audit: TPF211
            x @ weight
            + (x @ weight).exp()
        ).clone()
        return torch.cat(((chained @ weight).clone(), several))  # audit: TPF211
