"""Lightning modules by what they log."""

import lightning as L
import numpy as np
import pytorch_lightning as pl
import torch
from torch import nn


class Waits(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 1)

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        loss = self.net(batch).mean()
        self.log("loss", loss.item())  # error: TPF941
        self.log_dict({"loss": loss, "double": (2 * loss).item()})  # error: TPF941
        self.log("shown", loss, prog_bar=True)  # audit: TPF941
        return loss


class Exchanges(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 1)

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        loss = self.net(batch).mean()
        self.log("loss", loss, on_step=True, sync_dist=True)  # error: TPF941
        return loss


def trainers() -> None:
    L.Trainer(log_every_n_steps=1)  # audit: TPF941
    pl.Trainer(detect_anomaly=True)  # error: TPF941


class Unknown(L.LightningModule):
    def training_step(self, batch, index: int):
        loss = self.criterion(batch)
        self.log("loss", loss.item())  # error: TPF941
        self.log("seen", np.zeros(3).sum().item())
        return loss


class Keeps(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 1)

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        loss = self.net(batch).mean()
        self.log("loss", loss)
        self.log("rate", 0.1)
        self.log("epoch", loss, on_step=False, on_epoch=True, prog_bar=True, sync_dist=True)
        return loss


class Validates(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 1)

    def validation_step(self, batch: torch.Tensor, index: int) -> None:
        self.log("loss", self.net(batch).mean(), prog_bar=True, sync_dist=True)


class NoModule:
    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        loss = batch.mean()
        self.log("loss", loss, prog_bar=True)
        return loss


def profiled() -> None:
    L.Trainer(max_epochs=3, profiler="advanced")  # audit: TPF941


def other_trainers(debug: bool) -> None:
    L.Trainer(max_epochs=3, profiler="simple")
    L.Trainer(max_epochs=3)
    L.Trainer(log_every_n_steps=50, detect_anomaly=debug)


def of_another_library(library) -> None:
    library.Trainer(log_every_n_steps=1, detect_anomaly=True)


def from_a_dict() -> None:
    options = dict(max_epochs=3, detect_anomaly=True)
    L.Trainer(**options)  # error: TPF941


def from_a_dict_with_a_flag(debug: bool) -> None:
    options = dict(max_epochs=3, detect_anomaly=debug)
    L.Trainer(**options)
