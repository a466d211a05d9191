"""Collectives by how many numbers they reduce."""

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader


def train(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x in loader:
        y = model(x.cuda())
        loss, size = y.sum(), y.mean()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss.detach())  # audit: TPF923
        dist.all_reduce(size.detach())


class Accuracy(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        right, count = (x > 0).sum(), torch.ones((), device=x.device)
        dist.all_reduce(right, op=dist.ReduceOp.SUM)  # audit: TPF923
        dist.all_reduce(count, op=dist.ReduceOp.SUM)
        return right / count


class Sums(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b, c = x.sum(), x.square().sum(), x.amax()
        torch.distributed.reduce(a, 0)  # audit: TPF923
        torch.distributed.reduce(b, 0)
        torch.distributed.all_reduce(c, op=dist.ReduceOp.MAX)
        return a + b + c


class Packed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        both = torch.stack([x.sum(), x.square().sum()])
        dist.all_reduce(both)
        return both


class Different(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total, greatest = x.sum(), x.amax()
        dist.all_reduce(total, op=dist.ReduceOp.SUM)
        dist.all_reduce(greatest, op=dist.ReduceOp.MAX)
        return total + greatest


class Large(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        a, b = x.sum(0), y.sum(0)
        dist.all_reduce(a)
        dist.all_reduce(b)
        return a + b


def once_per_epoch(model: nn.Module, loader: DataLoader) -> None:
    total, count = torch.zeros((), device="cuda"), torch.zeros((), device="cuda")
    for x in loader:
        total += model(x.cuda()).sum()
        count += 1
    dist.all_reduce(total)
    dist.all_reduce(count)


def now_and_then(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for step, x in enumerate(loader):
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            dist.all_reduce(loss.detach())
            dist.all_reduce(loss.detach() * 2)


class InALoop(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for value in (x.sum(), y.mean()):
            dist.all_reduce(value)  # audit: TPF923
        sums = [x.sum(), y.sum()]
        for total in sums:
            dist.all_reduce(total)  # audit: TPF923
        return sums[0]

    def other(self, x: torch.Tensor, layers: list[torch.Tensor]) -> None:
        for value in (x.sum(0), x.mean(0)):
            dist.all_reduce(value)
        for value in (x.sum(),):
            dist.all_reduce(value)
        for layer in layers:
            dist.all_reduce(layer)


class Metrics:
    def reduced(self, **values):
        for name, value in values.items():
            value = value.detach().clone()
            dist.all_reduce(value)  # audit: TPF923
            self.latest[name] = value

    def totals(self, model: nn.Module) -> None:
        for value in model.state_dict().values():
            dist.all_reduce(value)

    def train(self, model: nn.Module, loader) -> None:
        for x in loader:
            loss = model(x.cuda()).mean()
            self.reduced(loss=loss, scaled=loss * 2)
            self.totals(model)


def mean_of(value: torch.Tensor) -> torch.Tensor:
    value = value.detach().clone()
    dist.all_reduce(value)  # audit: TPF923
    return value / dist.get_world_size()


def sum_of(value: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(value)
    return value


def sums_of(values: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(values)
    return values


def train_with_means(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    seen, total = torch.zeros((), device="cuda"), torch.zeros((), device="cuda")
    for x in loader:
        y = model(x.cuda())
        loss = y.sum()
        loss.backward()
        optimizer.step()
        total += torch.stack([mean_of(loss), mean_of(y.mean())]).sum()
        seen += sum_of(y.amax().detach())
        sums_of(y.sum(0)), sums_of(y.mean(0))
    sum_of(seen), sum_of(total)
