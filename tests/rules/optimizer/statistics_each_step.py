"""Statistics of whole models, each step and now and then."""

import torch
import wandb
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.tensorboard import SummaryWriter


def train(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    writer = SummaryWriter()
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
        for name, p in model.named_parameters():
            writer.add_histogram(name, p)  # error: TPF605


def sent_away(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x in loader:
        y = model(x)
        y.sum().backward()
        optimizer.step()
        wandb.log({"output": wandb.Histogram(y)})  # audit: TPF605


def watched(model: nn.Module) -> None:
    wandb.watch(model, log="all", log_freq=10)  # audit: TPF605


def under_an_interval(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    writer = SummaryWriter()
    for step, x in enumerate(loader):
        model(x).sum().backward()
        optimizer.step()
        if step % 500 == 0:
            for name, p in model.named_parameters():
                writer.add_histogram(name, p, step)


def once_an_epoch(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    writer = SummaryWriter()
    for epoch in range(10):
        for x in loader:
            model(x).sum().backward()
            optimizer.step()
        for name, p in model.named_parameters():
            writer.add_histogram(name, p, epoch)


def numbers(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    writer = SummaryWriter()
    for step, x in enumerate(loader):
        model(x).sum().backward()
        optimizer.step()
        writer.add_scalar("lr", optimizer.param_groups[0]["lr"], step)


def watched_now_and_then(model: nn.Module) -> None:
    wandb.watch(model, log="all")
    wandb.watch(model, log="gradients", log_freq=1000)
    wandb.watch(model, log=None, log_freq=1)


def drawn_once(model: nn.Module, x: torch.Tensor) -> None:
    SummaryWriter().add_graph(model, x)


def another_histogram(loader: DataLoader, model: nn.Module, plot) -> None:
    for x in loader:
        plot.add_histogram(model(x))
