"""Clocks that are read too early, and clocks that are not."""

import time
from time import perf_counter

import torch
from torch import nn
from torch.utils.data import DataLoader


def measure(model: nn.Module, x: torch.Tensor) -> float:
    x = x.cuda()
    start = time.time()
    model(x)
    return time.time() - start  # audit: TPF962


def both(model: nn.Module, loader: DataLoader) -> None:
    for x in loader:
        x = x.cuda()
        begin = perf_counter()
        y = model(x)
        forward = perf_counter() - begin  # audit: TPF962
        begin = perf_counter()
        y.sum().backward()
        backward = perf_counter() - begin  # audit: TPF962
        print(forward, backward)


def waits(model: nn.Module, x: torch.Tensor) -> float:
    x = x.cuda()
    torch.cuda.synchronize()
    start = time.time()
    model(x)
    torch.cuda.synchronize()
    return time.time() - start


def reads(model: nn.Module, x: torch.Tensor) -> float:
    x = x.cuda()
    start = time.time()
    loss = model(x).sum().item()
    print(loss)
    return time.time() - start


def epoch(model: nn.Module, loader: DataLoader) -> float:
    start = time.time()
    for x in loader:
        model(x.cuda()).sum().backward()
    return time.time() - start


def on_the_host(model: nn.Module) -> float:
    x = torch.zeros(3, 4)
    start = time.time()
    model(x)
    return time.time() - start


def of_loading(path: str) -> float:
    start = time.time()
    torch.load(path)
    return time.time() - start


def of_anything(run, x: torch.Tensor) -> float:
    start = time.time()
    run(x.cuda())
    return time.time() - start


def in_a_dict(model: nn.Module, x: torch.Tensor) -> float:
    x = x.cuda()
    times = {}
    times["start"] = time.perf_counter()
    model(x)
    return time.perf_counter() - times["start"]  # audit: TPF962


def in_a_dict_that_others_see(model: nn.Module, x: torch.Tensor, reset) -> float:
    x = x.cuda()
    times = {}
    times["start"] = time.perf_counter()
    model(x)
    reset(times)
    return time.perf_counter() - times["start"]
