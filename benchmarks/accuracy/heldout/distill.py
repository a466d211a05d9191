"""Knowledge distillation with mixup and cutmix, in modules that bring their own training step."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from argparse import ArgumentParser
from typing import Any, Callable

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import Optimizer
from torch.utils.data import DataLoader, TensorDataset


class Module(nn.Module, ABC):
    """What a trainer expects of a model: steps, optimizers, `self.log`."""

    def __init__(self) -> None:
        super().__init__()
        self.trainer: Trainer | None = None

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def log(self, name: str, value: Any, prog_bar: bool = False) -> None:
        if self.trainer is not None:
            self.trainer.results.add(name, value, prog_bar)

    def log_dict(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            self.log(name, value)

    @abstractmethod
    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor: ...

    @abstractmethod
    def validation_step(self, batch: Any, batch_idx: int) -> Any: ...

    @abstractmethod
    def configure_optimizers(self) -> tuple[Optimizer, Any]: ...

    def on_train_epoch_end(self) -> None:
        """Nothing, unless the module wants it."""


class ResultCollection:
    def __init__(self) -> None:
        self.sums: dict[str, torch.Tensor] = {}
        self.counts: dict[str, int] = {}
        self.bar: set[str] = set()

    def add(self, name: str, value: Any, prog_bar: bool) -> None:
        if isinstance(value, torch.Tensor):
            value = value.detach()
        self.sums[name] = self.sums.get(name, 0.0) + value
        self.counts[name] = self.counts.get(name, 0) + 1
        if prog_bar:
            self.bar.add(name)

    def reset(self) -> dict[str, float]:
        out = {name: float(total / self.counts[name]) for name, total in self.sums.items()}
        self.sums, self.counts = {}, {}
        return out

    def progress(self) -> str:
        shown = sorted(self.bar & self.sums.keys())
        return " ".join(f"{name}={self.sums[name] / self.counts[name]:.3f}" for name in shown)


class Trainer:
    def __init__(self, max_epochs: int, gradient_clip_val: float | None = None, refresh_rate: int = 10) -> None:
        self.max_epochs, self.clip, self.refresh_rate = max_epochs, gradient_clip_val, refresh_rate
        self.results = ResultCollection()
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.current_epoch = self.global_step = 0

    def to_device(self, batch: Any) -> Any:
        if isinstance(batch, torch.Tensor):
            return batch.to(self.device, non_blocking=True)
        if isinstance(batch, dict):
            return {k: self.to_device(v) for k, v in batch.items()}
        return type(batch)(self.to_device(b) for b in batch)

    def fit(self, module: Module, train: DataLoader, val: DataLoader) -> list[dict[str, float]]:
        module.to(self.device)
        module.trainer = self
        optimizer, scheduler = module.configure_optimizers()
        history = []
        for self.current_epoch in range(self.max_epochs):
            module.train()
            for i, batch in enumerate(train):
                loss = module.training_step(self.to_device(batch), i)
                optimizer.zero_grad()
                loss.backward()
                if self.clip:
                    nn.utils.clip_grad_norm_(module.parameters(), self.clip)
                optimizer.step()
                scheduler.step()
                self.global_step += 1
                if self.global_step % self.refresh_rate == 0:
                    print(f"\repoch {self.current_epoch} it {i} {self.results.progress()}", end="")
            module.on_train_epoch_end()
            metrics = self.results.reset()
            metrics.update(self.validate(module, val))
            history.append(metrics)
            print("\repoch", self.current_epoch, {k: round(v, 4) for k, v in metrics.items()})
        return history

    @torch.no_grad()
    def validate(self, module: Module, val: DataLoader) -> dict[str, float]:
        module.eval()
        for i, batch in enumerate(val):
            module.validation_step(self.to_device(batch), i)
        return self.results.reset()


def rand_bbox(size: torch.Size, lam: float) -> tuple[int, int, int, int]:
    h, w = size[-2:]
    cut = math.sqrt(1.0 - lam)
    cy, cx = np.random.randint(h), np.random.randint(w)
    half_h, half_w = int(h * cut) // 2, int(w * cut) // 2
    y1, y2 = np.clip(cy - half_h, 0, h), np.clip(cy + half_h, 0, h)
    x1, x2 = np.clip(cx - half_w, 0, w), np.clip(cx + half_w, 0, w)
    return y1, y2, x1, x2


def mix(x: torch.Tensor, y: torch.Tensor, num_classes: int, alpha: float = 0.4, cutmix_prob: float = 0.5):
    lam = np.random.beta(alpha, alpha)
    perm = torch.randperm(x.size(0), device=x.device)
    if np.random.rand() < cutmix_prob:
        y1, y2, x1, x2 = rand_bbox(x.shape, lam)
        x = x.clone()
        x[:, :, y1:y2, x1:x2] = x[perm, :, y1:y2, x1:x2]
        lam = 1 - (y2 - y1) * (x2 - x1) / (x.size(-1) * x.size(-2))
    else:
        x = lam * x + (1 - lam) * x[perm]
    target = F.one_hot(y, num_classes).float()
    return x, lam * target + (1 - lam) * target[perm]


def convnet(width: int, depth: int, num_classes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    cin = 1
    for i in range(depth):
        layers += [nn.Conv2d(cin, width, 3, padding=1), nn.BatchNorm2d(width), nn.GELU()]
        if i % 2 == 0:
            layers.append(nn.MaxPool2d(2))
        cin = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, num_classes))


class Classifier(Module):
    def __init__(self, width: int, depth: int, num_classes: int, lr: float, total_steps: int) -> None:
        super().__init__()
        self.net = convnet(width, depth, num_classes)
        self.num_classes, self.lr, self.total_steps = num_classes, lr, total_steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        self.log("train_loss", loss, prog_bar=True)
        self.log("train_acc", (logits.argmax(1) == y).float().mean())
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log_dict({"val_loss": F.cross_entropy(logits, y), "val_acc": (logits.argmax(1) == y).float().mean()})

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.lr)
        return opt, torch.optim.lr_scheduler.OneCycleLR(opt, self.lr, total_steps=self.total_steps)


class Student(Classifier):
    def __init__(self, teacher: Classifier, temperature: float, alpha: Callable[[int], float], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # in a list, so that its parameters are not ours
        self._teacher = [teacher.eval().requires_grad_(False)]
        self.temperature, self.alpha = temperature, alpha
        self.agreements: list[float] = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        x, soft = mix(x, y, self.num_classes)
        with torch.no_grad():
            t_logits = self._teacher[0](x)
        logits = self(x)
        T = self.temperature
        kd = F.kl_div(F.log_softmax(logits / T, 1), F.softmax(t_logits / T, 1), reduction="batchmean") * T * T
        ce = -(soft * logits.log_softmax(1)).sum(1).mean()
        alpha = self.alpha(self.trainer.current_epoch)
        loss = alpha * kd + (1 - alpha) * ce
        agreement = (logits.argmax(1) == t_logits.argmax(1)).float().mean()
        self.agreements.append(agreement.item())
        self.log("kd", kd, prog_bar=True)
        self.log("ce", ce)
        self.log("alpha", alpha)
        return loss

    def on_train_epoch_end(self) -> None:
        self.log("agreement", sum(self.agreements) / len(self.agreements))
        self.agreements.clear()


def blobs(n: int, classes: int, seed: int) -> TensorDataset:
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (n,), generator=g)
    freq = (y.float() + 1).view(-1, 1, 1)
    grid = torch.linspace(0, math.pi, 16)
    x = torch.sin(freq * grid.view(1, 16, 1)) * torch.cos(freq * grid.view(1, 1, 16))
    return TensorDataset((x + 0.7 * torch.randn(x.shape, generator=g)).unsqueeze(1), y)


def cli_main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--temperature", type=float, default=4.0)
    args = parser.parse_args()
    torch.manual_seed(42)
    np.random.seed(42)
    classes = 8
    pin = torch.cuda.is_available()
    train = DataLoader(blobs(1024, classes, 0), args.batch_size, shuffle=True, drop_last=True, pin_memory=pin)
    val = DataLoader(blobs(256, classes, 1), args.batch_size, pin_memory=pin)
    common = {"num_classes": classes, "lr": 3e-3, "total_steps": args.epochs * len(train)}
    start = time.perf_counter()
    teacher = Classifier(width=32, depth=4, **common)
    Trainer(args.epochs, gradient_clip_val=1.0).fit(teacher, train, val)
    student = Student(teacher, args.temperature, lambda epoch: max(0.3, 0.9 - 0.2 * epoch), width=12, depth=3, **common)
    history = Trainer(args.epochs).fit(student, train, val)
    best = max(history, key=lambda m: m["val_acc"])
    print(f"best student acc {best['val_acc']:.3f} after {time.perf_counter() - start:.1f}s")


if __name__ == "__main__":
    cli_main()
