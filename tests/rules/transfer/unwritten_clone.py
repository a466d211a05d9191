"""Clones that are only read, and clones that somebody needs."""

import copy

import torch
from torch import nn
from torch.nn import functional as F


class Layers(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.table = nn.Parameter(torch.zeros(width))

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        kept = x.clone()  # audit: TPF213
        x = self.first(x)
        x = self.second(F.gelu(x)) + kept
        error = (x - target.clone()) ** 2  # audit: TPF213
        return error, torch.cat([x, self.table.clone()[None]])  # audit: TPF213


def shifted(ids: torch.Tensor, start: int) -> torch.Tensor:
    out = ids.new_zeros(ids.shape)
    out[:, 1:] = ids[:, :-1].clone()  # audit: TPF213
    out[:, 0] = start
    return out


def relative(x: torch.Tensor, centre: torch.Tensor) -> torch.Tensor:
    moved = x.detach().clone()  # audit: TPF213
    moved = moved - centre
    moved *= 2
    return moved.mean(), scaled(x.clone(), 2)  # audit: TPF213


def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by


def positions(ids: torch.Tensor, past: int) -> torch.Tensor:
    count = torch.arange(ids.shape[1], device=ids.device)
    count = count.unsqueeze(0).expand(ids.shape).contiguous()  # audit: TPF213
    first = ids[:, :-1].contiguous()  # audit: TPF213
    return count + past, torch.where(first > 0, first, 0)


def laid_out(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    shifted = logits[..., :-1, :].contiguous()
    wanted = ids[:, 1:].contiguous().view(-1)
    rows = ids[None].expand(4, -1, -1).contiguous()
    return F.cross_entropy(shifted.view(-1, 8), wanted), logits.transpose(1, 2).contiguous() + 1, rows @ rows.mT


class Needed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.state = nn.Buffer(torch.zeros(4))
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = x.clone()
        x.mul_(2)
        old = self.state.clone()
        self.advance()
        view = x[0]
        kept = x.clone()
        view += 1
        out = x.clone()
        out[0] = 0
        return x - before, self.state - old, kept * 2, out, x.clone(), x.clone().contiguous()

    def advance(self) -> None:
        self.state.add_(1)


def overlapping(x: torch.Tensor) -> torch.Tensor:
    x[1:] = x[:-1].clone()
    part = x[:2]
    x[2:4] = part.clone()
    return x


def differences(x: torch.Tensor, steps: int) -> torch.Tensor:
    moved = 0
    for _ in range(steps):
        last = x.clone()
        moved = moved + (x - last)
        torch.add(x, 1, out=x)
    return moved


def weights_before(model: nn.Module, optimizer: torch.optim.Optimizer) -> torch.Tensor:
    before = model.weight.clone()
    optimizer.step()
    return (model.weight - before).norm()


def elsewhere(x: torch.Tensor, changes) -> torch.Tensor:
    kept = x.clone()
    changes(x)
    return x - kept


def leaf(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.requires_grad_()
    return (y * y).sum()


class Kept(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.last = x.clone()
        rows = [x.clone()]
        return rows, {"x": x.clone()}, x.clone(memory_format=torch.contiguous_format) + 1


def in_place_function(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y = F.relu(y, inplace=True)
    kept = x.clone()
    F.relu(x, inplace=True)
    return y + 1, kept + 1


def other_things(settings, spec) -> object:
    return settings.clone() + 1, spec.clone() == spec


def constructed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    start = torch.tensor(x)  # audit: TPF213
    return start + y


def handed_out(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor(x)  # audit: TPF213


def joined(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cat([x], dim=0) + y  # audit: TPF213


class Boxes:
    def __init__(self, corners: torch.Tensor):
        self.corners = corners


class Anchors(torch.nn.Module):
    def forward(self, grid: torch.Tensor, count: int) -> list[list[Boxes]]:
        anchors = [Boxes(grid), Boxes(grid + 1)]
        return [copy.deepcopy(anchors) for _ in range(count)]  # audit: TPF213


def of_numbers(count: int) -> torch.Tensor:
    return torch.tensor(count)


def cast(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor(x, dtype=torch.float64)


def of_two(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, y])


def of_many(parts: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([*parts])


def average_of(model: torch.nn.Module) -> torch.nn.Module:
    return copy.deepcopy(model)


def made_one(x: torch.Tensor) -> torch.Tensor:
    if not isinstance(x, torch.Tensor):
        x = torch.tensor(x)
    return x + 1
