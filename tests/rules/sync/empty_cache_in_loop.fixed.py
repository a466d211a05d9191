"""Emptying the cache over and over."""

import gc

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def train(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x, y in loader:
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        del loss


class Block(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.relu()
        return x


def train_with_care(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for step, (x, y) in enumerate(loader):
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            pass
        if model.training:
            pass


# Look-alikes


def change_of_phase(model: nn.Module, loader: DataLoader) -> None:
    for x, _ in loader:
        model(x.cuda())
    gc.collect()
    torch.cuda.empty_cache()


def out_of_memory(model: nn.Module, loader: DataLoader) -> None:
    for x, _ in loader:
        try:
            model(x.cuda()).sum().backward()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()


def one_model_after_the_other(widths: list[int], x: torch.Tensor) -> None:
    for width in widths:
        model = nn.Linear(x.shape[1], width).cuda()
        model(x.cuda())
        del model
        torch.cuda.empty_cache()


def when_full(model: nn.Module, loader: DataLoader) -> None:
    for x, _ in loader:
        model(x.cuda()).sum().backward()
        if torch.cuda.memory_reserved() > 2**34:
            torch.cuda.empty_cache()


def collected_elsewhere(garbage: list[object]) -> None:
    garbage.clear()
    gc.collect()


class Agent:
    def __init__(self, model: nn.Module):
        self.model = model.cuda()

    def next_token(self, tokens: torch.Tensor) -> int:
        logits = self.model(tokens.cuda())
        return int(logits.argmax(-1)[0])

    def reset(self) -> None:
        self.states = []
        torch.cuda.empty_cache()
