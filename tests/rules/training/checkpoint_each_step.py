"""How often models are saved."""

import torch
from safetensors.torch import save_file
from torch import nn
from torch.utils.data import DataLoader


def train(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()
        torch.save(model.state_dict(), "last.pt")  # error: TPF963


def with_others(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for step, x in enumerate(loader):
        model(x.cuda()).sum().backward()
        optimizer.step()
        torch.save({"model": model.state_dict(), "step": step}, f"{step}.pt")  # error: TPF963


def of_tensors(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()
        with open("log", "a") as file:
            file.write("step")
            save_file(model.state_dict(), "last.safetensors")  # error: TPF963


def now_and_then(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for step, x in enumerate(loader):
        model(x.cuda()).sum().backward()
        optimizer.step()
        if step % 1000 == 0:
            torch.save(model.state_dict(), "last.pt")


def the_best(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, best: float) -> None:
    for x in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        if loss < best:
            torch.save(model.state_dict(), "best.pt")


def each_epoch(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for epoch in range(10):
        for x in loader:
            model(x.cuda()).sum().backward()
            optimizer.step()
        torch.save(model.state_dict(), "last.pt")


def results(model: nn.Module, loader: DataLoader) -> None:
    for i, x in enumerate(loader):
        torch.save(model(x.cuda()).cpu(), f"{i}.pt")


def once(model: nn.Module) -> None:
    torch.save(model.state_dict(), "last.pt")


def one_step(model: nn.Module, x: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    model(x.cuda()).sum().backward()
    optimizer.step()
    torch.save(model.state_dict(), "step.pt")  # error: TPF963


def by_steps(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x in loader:
        one_step(model, x, optimizer)


def keep(model: nn.Module) -> None:
    torch.save(model.state_dict(), "kept.pt")


def with_interval(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for step, x in enumerate(loader):
        model(x.cuda()).sum().backward()
        optimizer.step()
        if step % 1000 == 0:
            keep(model)
