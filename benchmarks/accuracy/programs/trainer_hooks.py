"""A small trainer with hooks and callbacks, and a speech-command-like module that runs in it."""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, Dataset, random_split


class Callback:
    def on_train_batch_end(self, trainer: Trainer, module: TrainModule, outputs: Any, batch_idx: int) -> None: ...
    def on_validation_epoch_end(self, trainer: Trainer, module: TrainModule) -> None: ...


class TrainModule(nn.Module):
    trainer: Trainer

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def log(self, name: str, value: Any, prog_bar: bool = False) -> None:
        self.trainer.log_value(name, value, prog_bar)

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        raise NotImplementedError

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        raise NotImplementedError

    def on_validation_epoch_end(self) -> None: ...

    def configure_optimizers(self) -> tuple[torch.optim.Optimizer, Any]:
        raise NotImplementedError


class ProgressPrinter(Callback):
    def __init__(self, every: int = 5) -> None:
        self.every = every
        self.smoothed = None

    def on_train_batch_end(self, trainer, module, outputs, batch_idx):
        loss = outputs["loss"].detach().item()
        self.smoothed = loss if self.smoothed is None else 0.8 * self.smoothed + 0.2 * loss
        if batch_idx % self.every == 0:
            bar = {k: f"{v:.3f}" for k, v in trainer.progress_bar.items()}
            print(f"epoch {trainer.current_epoch} batch {batch_idx} loss {self.smoothed:.4f} {bar}")


class EarlyStopping(Callback):
    def __init__(self, monitor: str, patience: int = 3) -> None:
        self.monitor, self.patience, self.best, self.wait = monitor, patience, float("inf"), 0

    def on_validation_epoch_end(self, trainer, module):
        current = trainer.callback_metrics[self.monitor]
        if current < self.best:
            self.best, self.wait = current, 0
        else:
            self.wait += 1
            trainer.should_stop = self.wait >= self.patience


class Checkpoint(Callback):
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def on_validation_epoch_end(self, trainer, module):
        torch.save(module.state_dict(), self.folder / f"epoch{trainer.current_epoch}.pt")


class GradientMonitor(Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch_idx):
        norms = [p.grad.norm() for p in module.parameters() if p.grad is not None]
        module.log("grad_norm", torch.stack(norms).norm())


class Trainer:
    def __init__(self, max_epochs: int, callbacks: list[Callback], log_every_n_steps: int = 10) -> None:
        self.max_epochs = max_epochs
        self.callbacks = callbacks
        self.log_every_n_steps = log_every_n_steps
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.progress_bar: dict[str, float] = {}
        self.callback_metrics: dict[str, float] = {}
        self.history: dict[str, list[float]] = defaultdict(list)
        self._epoch_values: dict[str, list] = defaultdict(list)
        self.global_step, self.current_epoch, self.should_stop = 0, 0, False

    def log_value(self, name: str, value: Any, prog_bar: bool) -> None:
        if isinstance(value, torch.Tensor):
            value = value.detach()
        self._epoch_values[name].append(value)
        if prog_bar:
            self.progress_bar[name] = float(value)
        if self.global_step % self.log_every_n_steps == 0:
            self.history[name].append(value.item() if isinstance(value, torch.Tensor) else value)

    def call(self, hook: str, *args: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, hook)(self, self.module, *args)

    def to_device(self, batch: Any) -> Any:
        if isinstance(batch, torch.Tensor):
            return batch.to(self.device, non_blocking=True)
        if isinstance(batch, dict):
            return {k: self.to_device(v) for k, v in batch.items()}
        if isinstance(batch, (list, tuple)):
            return type(batch)(self.to_device(v) for v in batch)
        return batch

    def fit(self, module: TrainModule, train_loader: DataLoader, val_loader: DataLoader) -> None:
        self.module = module.to(self.device)
        module.trainer = self
        optimizer, scheduler = module.configure_optimizers()
        for self.current_epoch in range(self.max_epochs):
            module.train()
            for batch_idx, batch in enumerate(train_loader):
                batch = self.to_device(batch)
                loss = module.training_step(batch, batch_idx)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                self.call("on_train_batch_end", {"loss": loss}, batch_idx)
                self.global_step += 1
            scheduler.step()
            self.validate(val_loader)
            if self.should_stop:
                break

    @torch.no_grad()
    def validate(self, loader: DataLoader) -> None:
        self.module.eval()
        self._epoch_values.clear()
        for batch_idx, batch in enumerate(loader):
            self.module.validation_step(self.to_device(batch), batch_idx)
        self.module.on_validation_epoch_end()
        for name, values in self._epoch_values.items():
            self.callback_metrics[name] = torch.as_tensor(values, dtype=torch.float32).mean().item()
        self.call("on_validation_epoch_end")
        print(f"epoch {self.current_epoch} validation", {k: round(v, 4) for k, v in self.callback_metrics.items()})


class Tones(Dataset):
    def __init__(self, n: int, classes: int = 6) -> None:
        self.n, self.classes = n, classes

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        g = torch.Generator().manual_seed(i)
        length = int(torch.randint(30, 80, (1,), generator=g).item())
        label = i % self.classes
        t = torch.arange(length).float()
        wave = torch.sin(t[:, None] * (0.1 + 0.07 * label) * torch.arange(1, 9))
        return wave + 0.3 * torch.randn(length, 8, generator=g), label


def collate(items: list[tuple[torch.Tensor, int]]) -> dict[str, torch.Tensor]:
    lengths = torch.tensor([len(wave) for wave, _ in items])
    waves = torch.zeros(len(items), int(lengths.max()), 8)
    for i, (wave, _) in enumerate(items):
        waves[i, : len(wave)] = wave
    return {"waves": waves, "lengths": lengths, "labels": torch.tensor([label for _, label in items])}


class CommandModule(TrainModule):
    def __init__(self, classes: int = 6, hidden: int = 64) -> None:
        super().__init__()
        self.classes = classes
        self.conv = nn.Conv1d(8, hidden, 5, padding=2)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, classes)
        self.register_buffer("confusion", torch.zeros(classes, classes, dtype=torch.long))

    def forward(self, waves: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.conv(waves.transpose(1, 2))).transpose(1, 2)
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=waves.shape[1])
        mask = torch.arange(out.shape[1], device=out.device)[None] < lengths[:, None]
        pooled = (out * mask.unsqueeze(-1)).sum(1) / lengths[:, None]
        return self.head(pooled)

    def training_step(self, batch, batch_idx):
        logits = self(batch["waves"], batch["lengths"])
        loss = F.cross_entropy(logits, batch["labels"])
        acc = (logits.argmax(1) == batch["labels"]).float().mean()
        self.log("train_loss", loss)
        self.log("train_acc", acc, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        logits = self(batch["waves"], batch["lengths"])
        preds = logits.argmax(1)
        self.log("val_loss", F.cross_entropy(logits, batch["labels"]))
        self.log("val_acc", (preds == batch["labels"]).float().mean(), prog_bar=True)
        for t, p in zip(batch["labels"].view(-1), preds.view(-1)):
            self.confusion[t.long(), p.long()] += 1

    def on_validation_epoch_end(self):
        per_class = self.confusion.diag() / self.confusion.sum(1).clamp(min=1)
        print("per-class accuracy", [f"{a:.2f}" for a in per_class])
        self.confusion.zero_()

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=2e-3)
        return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(0)
    train_set, val_set = random_split(Tones(320), [256, 64])
    pin = torch.cuda.is_available()
    train_loader = DataLoader(train_set, args.batch_size, shuffle=True, collate_fn=collate, pin_memory=pin)
    val_loader = DataLoader(val_set, args.batch_size, collate_fn=collate, pin_memory=pin)
    with TemporaryDirectory() as folder:
        callbacks = [ProgressPrinter(), GradientMonitor(), EarlyStopping("val_loss"), Checkpoint(Path(folder))]
        Trainer(args.epochs, callbacks).fit(CommandModule(), train_loader, val_loader)
        print("checkpoints", sorted(path.name for path in Path(folder).iterdir()))


if __name__ == "__main__":
    main()
