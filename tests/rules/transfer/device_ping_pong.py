"""Data that leaves the device and comes back, and data that only goes one way."""

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import nn
from torch.utils.data import DataLoader


class Spectrum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.abs(np.fft.rfft(x.cpu().numpy()))).to(x.device)  # audit: TPF205


class Sorted(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        host = x.detach().cpu().numpy()
        order = np.argsort(host, axis=-1)
        index = torch.tensor(order, device=x.device)  # audit: TPF205
        return x.gather(-1, index)


def clipped(model: nn.Module, loader: DataLoader) -> None:
    for x in loader:
        cost = model(x.cuda())
        bound = np.quantile(cost.detach().cpu().numpy(), 0.9, axis=0)
        cost.clamp(max=torch.as_tensor(bound).cuda()).sum().backward()  # audit: TPF205


class Listed(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        sizes = np.maximum(lengths.tolist(), 1)
        return x / torch.tensor(sizes).to(x.device)  # audit: TPF205


class OnTheHostOnPurpose(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.svdvals(x.cpu()).to(x.device)


def saved(model: nn.Module, loader: DataLoader) -> list[np.ndarray]:
    outputs = []
    for x in loader:
        outputs.append(model(x.cuda()).cpu().numpy())
    return outputs


def moved_in(loader: DataLoader, model: nn.Module) -> None:
    for x in loader:
        y = torch.from_numpy(np.log(x.numpy())).cuda()
        model(y).sum().backward()


class FromNumbers(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = torch.tensor(np.arange(4), device=x.device)
        return x * scale


class Stays(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        order = x.argsort(-1)
        return x.gather(-1, order.to(x.device))


def on_the_host(values: np.ndarray) -> torch.Tensor:
    host = torch.from_numpy(values).numpy()
    return torch.tensor(host * 2).cuda()


class Rebound(nn.Module):
    def forward(self, x: torch.Tensor, table: np.ndarray) -> torch.Tensor:
        host = x.cpu().numpy()
        print(host.shape)
        host = table
        return torch.from_numpy(host).to(x.device)


def matched(model: nn.Module, loader: DataLoader) -> None:
    for x in loader:
        cost = model(x.cuda())
        pairs = linear_sum_assignment(cost.detach().cpu().numpy())
        found = torch.as_tensor(np.stack(pairs)).cuda()
        cost[found[0], found[1]].sum().backward()
