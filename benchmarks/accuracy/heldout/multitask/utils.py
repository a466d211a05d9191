"""Helpers: writer, meters, weights of losses, gradients."""
import csv
import os
import time
from collections import OrderedDict
from typing import Dict, Iterable, List, Optional, Union

import numpy as np
import torch
from torch import Tensor, nn


class SummaryWriter:
    """As much of a tensorboard writer as fits in a csv file."""

    def __init__(self, log_dir: str, flush_secs: float = 5.0):
        os.makedirs(log_dir, exist_ok=True)
        self._file = open(os.path.join(log_dir, "scalars.csv"), "w", newline="")
        self._writer = csv.writer(self._file)
        self._flush_secs, self._last = flush_secs, time.time()

    def add_scalar(self, tag: str, value: Union[float, Tensor], step: int) -> None:
        if isinstance(value, Tensor):
            value = value.detach().cpu().item()
        self._writer.writerow([tag, step, float(value)])
        if time.time() - self._last > self._flush_secs:
            self._file.flush()
            self._last = time.time()

    def add_scalars(self, main_tag: str, values: Dict[str, Union[float, Tensor]], step: int) -> None:
        for tag, value in values.items():
            self.add_scalar(f"{main_tag}/{tag}", value, step)

    def add_histogram(self, tag: str, values: Tensor, step: int, bins: int = 16) -> None:
        counts, edges = np.histogram(values.detach().float().cpu().numpy(), bins=bins)
        self._writer.writerow([tag, step, *counts.tolist(), *np.round(edges, 4).tolist()])

    def close(self) -> None:
        self._file.close()


class Meters:
    """Running averages that stay where the losses are until they are asked for."""

    def __init__(self):
        self._sum: Dict[str, Tensor] = OrderedDict()
        self._n = 0

    def update(self, losses: Dict[str, Tensor]) -> None:
        for k, v in losses.items():
            self._sum[k] = self._sum[k] + v.detach() if k in self._sum else v.detach().clone()
        self._n += 1

    def averages(self, reset: bool = True) -> Dict[str, float]:
        if not self._sum:
            return {}
        values = (torch.stack(list(self._sum.values())) / self._n).tolist()
        out = dict(zip(self._sum, values))
        if reset:
            self._sum.clear()
            self._n = 0
        return out


class EMA:
    def __init__(self, model: nn.Module, decay: float = 0.9):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
        self.backup: Dict[str, Tensor] = {}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        for n, p in model.named_parameters():
            if n in self.shadow:
                self.shadow[n].mul_(self.decay).add_(p, alpha=1 - self.decay)

    def apply(self, model: nn.Module) -> None:
        for n, p in model.named_parameters():
            if n in self.shadow:
                self.backup[n] = p.data
                p.data = self.shadow[n]

    def restore(self, model: nn.Module) -> None:
        for n, p in model.named_parameters():
            if n in self.backup:
                p.data = self.backup[n]
        self.backup = {}


class UncertaintyWeighting(nn.Module):
    """One learned log variance for each task."""

    def __init__(self, tasks: List[str]):
        super().__init__()
        self.log_vars = nn.ParameterDict({t: nn.Parameter(torch.zeros(())) for t in tasks})

    def forward(self, losses: Dict[str, Tensor]) -> Tensor:
        total = 0.0
        for name, loss in losses.items():
            s = self.log_vars[name]
            total = total + torch.exp(-s) * loss + 0.5 * s
        return total

    def weights(self) -> Dict[str, float]:
        return {name: float(torch.exp(-s)) for name, s in self.log_vars.items()}


class DynamicWeightAverage:
    """Weights by how fast each loss went down over the last two epochs."""

    def __init__(self, tasks: List[str], temperature: float = 2.0):
        self.tasks, self.temperature = tasks, temperature
        self.history: List[np.ndarray] = []
        self.w = np.ones(len(tasks))

    def step(self, averages: Dict[str, float]) -> None:
        self.history.append(np.array([averages[t] for t in self.tasks]))
        if len(self.history) >= 2:
            ratio = np.exp(self.history[-1] / self.history[-2] / self.temperature)
            self.w = len(self.tasks) * ratio / ratio.sum()

    def __call__(self, losses: Dict[str, Tensor]) -> Tensor:
        w = torch.tensor(self.w, dtype=torch.float32, device=losses[self.tasks[0]].device)
        return (w * torch.stack([losses[t] for t in self.tasks])).sum()

    def weights(self) -> Dict[str, float]:
        return dict(zip(self.tasks, self.w.tolist()))


def global_grad_norm(params: Iterable[nn.Parameter]) -> float:
    total_norm = 0.0
    for p in params:
        if p.grad is not None:
            total_norm += p.grad.data.norm(2).item() ** 2
    return total_norm ** 0.5


def clip_gradients(model: nn.Module, clip: float) -> List[float]:
    norms = []
    for _, p in model.named_parameters():
        if p.grad is not None:
            param_norm = p.grad.data.norm(2)
            norms.append(param_norm.item())
            clip_coef = clip / (param_norm + 1e-6)
            if clip_coef < 1:
                p.grad.data.mul_(clip_coef)
    return norms


def first_bad_gradient(model: nn.Module) -> Optional[str]:
    for n, p in model.named_parameters():
        if p.grad is not None and not torch.isfinite(p.grad).all():
            return n
    return None
