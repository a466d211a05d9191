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
        torch.add(x, 1, out=x)
        moved = moved + (x - last)
    return moved


def differences_from(x: torch.Tensor, steps: int) -> torch.Tensor:
    moved = 0
    for _ in range(steps):
        start = x.clone()  # audit: TPF213
        moved = moved + (start - 1)
        torch.add(x, 1, out=x)
    return moved


def differences_to_the_last(x: torch.Tensor, steps: int) -> torch.Tensor:
    moved = last = 0
    for _ in range(steps):
        moved = moved + (x - last)
        last = x.clone()
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


class Queue(nn.Module):
    """A memory bank: autograd keeps what is multiplied until the backward pass, and the queue is written to before."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("queue", torch.randn(128, 4096))
        self.register_buffer("old", torch.randn(128, 4096))
        self.position = 0

    def enqueue(self, keys: torch.Tensor) -> None:
        self.queue[:, self.position : self.position + len(keys)] = keys.T

    def forward(self, query: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        positive = torch.einsum("nc,nc->n", query, keys)
        negative = torch.einsum("nc,ck->nk", query, self.queue.clone().detach())
        self.enqueue(keys)
        return torch.cat([positive[:, None], negative], dim=1)

    def scores(self, query: torch.Tensor) -> torch.Tensor:
        return query @ self.queue.clone().detach()

    def scores_without_gradient(self, query: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return query @ self.queue.clone()  # audit: TPF213

    def scores_of_old(self, query: torch.Tensor) -> torch.Tensor:
        return query @ self.old.clone()  # audit: TPF213

    def spread(self) -> torch.Tensor:
        return self.queue.clone() - 1  # audit: TPF213


def swapped(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    held = [x]
    kept = x.clone()
    held[0].mul_(2)
    return y - kept


def written_as_an_array(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    kept = x.clone()
    x.numpy().fill(0)
    return y - kept


def written_in_the_same_expression(x: torch.Tensor) -> torch.Tensor:
    return torch.sub(x.clone(), x.mul_(2))


def replaced(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    kept = x.clone()
    x.data = y
    return y - kept


def written_in_the_next_turn(x: torch.Tensor, steps: int) -> torch.Tensor:
    kept, total = None, 0
    for step in range(steps):
        x += 1
        if step % 2:
            kept = x.clone()
        if kept is not None:
            total = total + (kept - 1)
    return total


def of_others(x: torch.Tensor):
    kept = x.clone()
    yield x
    return x - kept


BANK = torch.zeros(4)


def of_the_file(advance, x: torch.Tensor) -> torch.Tensor:
    kept = BANK.clone()
    advance()
    return x - kept


def seen_by_a_closure(x: torch.Tensor, changes) -> torch.Tensor:
    kept = x.clone()

    def step():
        x.add_(1)

    changes(step)
    return x - kept


def kept_by_others(x: torch.Tensor) -> torch.Tensor:
    global LAST
    LAST = x.clone()
    return LAST + 1


def of_the_state(model: torch.nn.Linear, other: dict, optimizer, x: torch.Tensor):
    state = model.state_dict()
    first = state["weight"].clone()
    model.load_state_dict(other)
    second = model.state_dict()["weight"].clone()
    optimizer.step()
    third = next(model.parameters()).detach().clone()
    fourth = dict(model.named_parameters())["weight"].clone()
    model(x)
    fifth = list(model.buffers())[0].clone()
    model.weight.data.zero_()
    return first + 1, second + 1, third + 1, fourth + 1, fifth + 1


class Averages(nn.Module):
    """A product with a number keeps no operand for the backward pass, one with a tensor does."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Buffer(torch.zeros(4))

    def forward(self, x: torch.Tensor, weight: torch.Tensor, rate: float) -> torch.Tensor:
        near = x + self.mean.clone() * rate  # audit: TPF213
        half = self.mean.clone() / 2  # audit: TPF213
        far = self.mean.clone() * weight
        inverse = 1 / self.mean.clone()
        return near + half + far + inverse + self.mean.clone() ** 2

    def update(self, x: torch.Tensor) -> None:
        self.mean.mul_(0.9).add_(x)
