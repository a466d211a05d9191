"""Losses that are kept with their graph, and losses that are not."""

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def added(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> float:
    total = 0.0
    for x in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        total += loss  # error: TPF210
    return total.item() / len(loader)


def weighted(model, loader, optimizer, scaler):
    running = 0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        running += loss * x.size(0)  # error: TPF210
    print(running / len(loader))


def collected(model, loader, optimizer) -> list[torch.Tensor]:
    losses = []
    for x in loader:
        loss = model(x).sum()
        losses.append(loss)  # error: TPF210
        loss.backward()
        optimizer.step()
    return losses


def needed(model, loader, optimizer) -> None:
    total = 0.0
    for x in loader:
        loss = model(x).sum()
        total += loss
    total.backward()
    optimizer.step()


def needed_too(model, batches, optimizer) -> None:
    total = 0.0
    for x in batches:
        loss = model(x).sum()
        loss.backward(retain_graph=True)
        total += loss
    penalty = total * 2
    penalty.backward()
    optimizer.step()


def read(model, loader, optimizer) -> float:
    total, others, numbers = 0.0, [], []
    for x in loader:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        total += loss.item()
        total += float(loss)
        others.append(loss.detach())
        numbers.append(loss.item() * x.size(0))
    return total


def rebound(model, loader, optimizer) -> float:
    total = 0.0
    for x in loader:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        loss = loss.item()
        total += loss
    return total


def parts_of_one_step(model, loader, optimizer) -> None:
    for x in loader:
        parts = 0.0
        for head in model.heads:
            loss = head(x).sum()
            parts += loss
        parts.backward()
        optimizer.step()


def in_evaluation(model, loader) -> float:
    total = 0.0
    with torch.no_grad():
        for x in loader:
            loss = model(x).sum()
            total += loss
    return total.item()


def with_gradients_off(model, loader, optimizer) -> torch.Tensor:
    total = torch.zeros((), device="cuda")
    for x in loader:
        loss = model(x).sum()
        loss.backward()
        with torch.no_grad():
            total += loss
    return total


def accelerated(model, loader, optimizer, accelerator):
    total = others = 0.0
    for x in loader:
        loss = model(x).sum()
        total += accelerator.reduce(loss.detach().float(), reduction="sum")
        others += loss  # error: TPF210
        accelerator.backward(loss)
        optimizer.step()
    return total, others


SEEN = 0.0


def counted(model: nn.Module, loader, optimizer) -> float:
    global SEEN
    SEEN = 0.0
    for x in loader:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        SEEN += loss
    return float(SEEN)


def later() -> None:
    SEEN.backward()


def with_a_closure(model: nn.Module, loader, optimizer):
    total = 0.0

    def step(x):
        nonlocal total
        total = 0.0
        for part in x:
            loss = model(part).sum()
            loss.backward()
            total += loss

    for x in loader:
        step(x)
    total.backward()
    optimizer.step()


def one_step(model: nn.Module, x, optimizer, total, losses):
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    losses.append(loss)  # error: TPF210
    total += loss  # error: TPF210
    return total


def by_functions(model: nn.Module, loader, optimizer):
    total, losses = 0.0, []
    for x in loader:
        total = one_step(model, x, optimizer, total, losses)
    return total.item()


def of_one_step(model: nn.Module, x, optimizer, total):
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    total += loss
    return total


def forgotten(model: nn.Module, loader, optimizer):
    start = 0.0
    for x in loader:
        of_one_step(model, x, optimizer, start)
    return start


def part_of_a_loss(model: nn.Module, x, total):
    loss = model(x).sum()
    loss.backward(inputs=[x])
    total += loss
    return total


def together(model: nn.Module, loader, optimizer):
    total = 0.0
    for x in loader:
        total = part_of_a_loss(model, x, total)
    total.backward()
    optimizer.step()


class Kept:
    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer):
        self.model, self.optimizer = model.cuda(), optimizer
        self.total, self.losses, self.sum = 0.0, [], 0.0

    def fit(self, loader):
        for x in loader:
            loss = self.model(x.cuda()).mean()
            loss.backward()
            self.optimizer.step()
            self.total += loss  # error: TPF210
            self.losses.append(loss)  # error: TPF210

    def fit_without(self, loader):
        for x in loader:
            loss = self.model(x.cuda()).mean()
            loss.backward()
            self.optimizer.step()
            self.total += loss.detach()
            self.losses.append(loss.item())

    def all_at_once(self, loader):
        for x in loader:
            loss = self.model(x.cuda()).mean()
            loss.backward()
            self.sum += loss
        self.sum.backward()


def in_a_dict(model, loader, optimizer):
    sums = {"loss": 0.0, "count": 0}
    for x in loader:
        loss = model(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        sums["loss"] += loss  # error: TPF210
        sums["count"] += 1
    return sums


def in_a_dict_of_each_step(model, loader, optimizer):
    for x in loader:
        sums = {"loss": 0.0}
        loss = model(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        sums["loss"] += loss
        print(sums)


class Lit(L.LightningModule):
    def training_step(self, batch, index):
        loss = F.cross_entropy(self.net(batch["x"]), batch["y"])
        self.losses.append(loss)  # error: TPF210
        return {"loss": loss}

    def validation_step(self, batch, index):
        loss = F.cross_entropy(self.net(batch["x"]), batch["y"])
        self.losses.append(loss)
        return loss


class LitWithoutGraphs(L.LightningModule):
    def training_step(self, batch, index):
        parts = []
        loss = F.cross_entropy(self.net(batch["x"]), batch["y"])
        parts.append(loss)
        self.losses.append(loss.detach())
        self.total += loss.item()
        self.latest = loss
        return loss


class OwnTrainer:
    def compute_loss(self, model, inputs):
        loss = model(**inputs).mean()
        self.total += loss  # error: TPF210
        return loss


class AverageMeter:
    def __init__(self):
        self.value, self.sum, self.count, self.history = 0.0, 0.0, 0, []

    def update(self, value, n=1):
        self.value = value
        self.sum += value * n
        self.count += n

    def keep(self, value):
        self.history.append(value)

    def keep_number(self, value):
        if isinstance(value, torch.Tensor):
            value = value.item()
        self.history.append(value)

    def keep_detached(self, value):
        self.history.append(value.detach())

    @torch.no_grad()
    def sum_up(self, value):
        self.sum += value

    def latest(self, value):
        self.value = value


def metered(model, loader, optimizer):
    meter, parts = AverageMeter(), {"loss": AverageMeter()}
    for x in loader:
        loss = model(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        meter.update(loss, n=len(x))  # error: TPF210
        meter.update(n=1, value=loss / 2)  # error: TPF210
        meter.keep(loss)  # error: TPF210
        parts["loss"].update(loss)  # error: TPF210
        meter.update(loss.detach(), len(x))
        meter.update(loss.item(), len(x))
        meter.keep_number(loss)
        meter.keep_detached(loss)
        meter.sum_up(loss)
        meter.latest(loss)
        own = AverageMeter()
        own.update(loss)
