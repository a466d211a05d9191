"""Tensors built from Python lists of tensors."""

import numpy as np
import torch
from torch import nn


def losses(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a, b = a.cuda(), b.cuda()
    return torch.stack([a.mean(), b.mean()]).detach()


def losses_on_device(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a, b = a.cuda(), b.cuda()
    return torch.stack((a.sum(), b.sum())).detach().to(
        device="cuda", dtype=torch.float64
    )


def gathered(model: nn.Module, batches: list[torch.Tensor]) -> torch.Tensor:
    found = []
    for batch in batches:
        found.append(model(batch.cuda()).mean())
    return torch.as_tensor(found)


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.ones(()))
        self.b = nn.Parameter(torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.tensor([[self.a, self.b]])


def sizes(shapes: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    for height, width in shapes:
        x = x * torch.tensor([[width, height]], device=x.device)
    return x


class Metrics:
    """Some of the values are tensors, as the test shows."""

    def __init__(self) -> None:
        self.values = []

    def add(self, value) -> None:
        if isinstance(value, torch.Tensor):
            value = value.detach()
        self.values.append(value)

    def mean(self) -> torch.Tensor:
        return torch.as_tensor(self.values).mean()


def annotated(values: list[torch.Tensor]) -> torch.Tensor:
    return torch.tensor(values)


class Wavelet(nn.Module):
    """Other classes give the filters, which are where the callers put them."""

    @property
    def filters(self) -> tuple[torch.Tensor, torch.Tensor]:
        raise NotImplementedError

    def alias_loss(self, length: int) -> torch.Tensor:
        low, high = self.filters
        minus = torch.ones(1, device=low.device).neg()
        signs = torch.tensor([torch.pow(minus, n) for n in range(length)][::-1])
        return (high - signs * low).sum()

    def show(self, length: int) -> torch.Tensor:
        low, _ = self.filters
        return torch.tensor([low.sum() * n for n in range(length)])


def scores(x: torch.Tensor, limits: torch.Tensor, parts: int) -> torch.Tensor:
    found = []
    for part in range(parts):
        found.append((x[part::parts] - x).square().mean())
    low, high = limits
    bounds = torch.tensor([low, high])
    return torch.tensor(found) * bounds


# Look-alikes


class Made(nn.Module):
    def __init__(self, low: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("powers", torch.tensor([low.sum() ** n for n in range(3)]))


def of_numbers(a: float, b: float) -> torch.Tensor:
    return torch.tensor([a, b, 1.0])


def of_shapes(x: torch.Tensor) -> torch.Tensor:
    x = x.cuda()
    return torch.tensor([x.shape[0], x.shape[1]])


def of_host_tensors(count: int) -> torch.Tensor:
    order = torch.randperm(count)
    return torch.tensor([order[0], order[1]])


def stacked(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a, b = a.cuda(), b.cuda()
    return torch.stack([a.mean(), b.mean()])


def of_an_array(values: np.ndarray) -> torch.Tensor:
    return torch.as_tensor(values)


def of_one_tensor(x: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(x.cuda())


class Numbers:
    """The values are read when they come."""

    def __init__(self) -> None:
        self.values = []

    def add(self, value) -> None:
        if isinstance(value, torch.Tensor):
            value = value.item()
        self.values.append(value)

    def mean(self) -> torch.Tensor:
        return torch.as_tensor(self.values).mean()


class Anything:
    def __init__(self) -> None:
        self.values = []

    def add(self, value) -> None:
        self.values.append(value)

    def mean(self) -> torch.Tensor:
        return torch.as_tensor(self.values).mean()


class OnCpu:
    def __init__(self) -> None:
        self.values = []

    def add(self, value) -> None:
        if isinstance(value, torch.Tensor):
            value = value.cpu()
        self.values.append(value)

    def mean(self) -> torch.Tensor:
        return torch.as_tensor(self.values).mean()


def sampled(triples, device):
    heads, tails = zip(*triples)
    return torch.tensor(heads, device=device), torch.tensor(tails, device=device)


def train(model, train_loader, optimizer, device):
    for heads, tails in train_loader:
        heads, tails = heads.to(device), tails.to(device)
        loss = model(sampled(list(zip(heads, tails)), device))
        loss.backward()
        optimizer.step()


def drawn(pairs, device):
    heads, tails = zip(*pairs)
    return torch.tensor(heads, device=device), torch.tensor(tails, device=device)


def train_on_cpu_rows(model, train_loader, optimizer, device):
    for heads, tails in train_loader:
        loss = model(drawn(list(zip(heads, tails)), device))
        loss.backward()
        optimizer.step()
