"""Metrics by how often they are computed."""

import lightning as L
import torch
import torchmetrics
from torch import nn
from torch.utils.data import DataLoader
from torchmetrics.classification import MulticlassAccuracy


def evaluate(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    accuracy = MulticlassAccuracy(num_classes=10)
    for x, y in loader:
        accuracy.update(model(x), y)
    return accuracy.compute()


def each_step(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    error = torchmetrics.MeanSquaredError()
    for x, y in loader:
        z = model(x)
        (z - y).sum().backward()
        optimizer.step()
        error.update(z, y)
        print(error.compute())


class Watched(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean = torchmetrics.MeanMetric()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean.update(x.sum())
        return x


def gathered(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    accuracy = MulticlassAccuracy(num_classes=10)
    for x, y in loader:
        accuracy.update(model(x), y)
    return accuracy.compute()


def shown(model: nn.Module, loader: DataLoader) -> list[torch.Tensor]:
    accuracy = MulticlassAccuracy(num_classes=10)
    return [accuracy(model(x), y) for x, y in loader]


class Logged(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.accuracy = MulticlassAccuracy(num_classes=10)

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        self.accuracy(batch, batch)
        self.log("accuracy", self.accuracy)
        return batch.sum()


def functional(model: nn.Module, loader: DataLoader) -> list[torch.Tensor]:
    found = []
    for x, y in loader:
        found.append(torchmetrics.functional.accuracy(model(x), y, task="binary"))
    return found


def something_else(model: nn.Module, loader: DataLoader, metric) -> None:
    for x, y in loader:
        metric(model(x), y)
        metric.compute()


@torch.inference_mode()
def on_the_gpu(model: nn.Module, loader: DataLoader, record) -> None:
    accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=4).cuda()
    mean = torchmetrics.classification.MulticlassF1Score(num_classes=4).to("cuda", non_blocking=True)
    for x, y in loader:
        accuracy.update(model(x.cuda()), y.cuda())
        mean.update(model(x.cuda()), y.cuda())
        record(mean.compute())


@torch.inference_mode()
def several(model: nn.Module, loader: DataLoader, metrics: torchmetrics.MetricCollection, record) -> None:
    metrics = metrics.to("cuda")
    for x, y in loader:
        metrics.update(model(x.cuda()), y.cuda())
    record(metrics.compute())
