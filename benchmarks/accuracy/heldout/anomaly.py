"""Anomaly detection in sensor windows: autoencoder, percentile threshold, AUROC, plus a Mahalanobis baseline."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class Config:
    window: int = 64
    channels: int = 4
    latent: int = 8
    epochs: int = 6
    batch_size: int = 64
    lr: float = 2e-3
    percentile: float = 95.0
    noise: float = 0.05


class AverageMeter:
    """Computes and stores the average and current value"""

    def __init__(self, name: str, fmt: str = ":f") -> None:
        self.name, self.fmt = name, fmt
        self.reset()

    def reset(self) -> None:
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n: int = 1) -> None:
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self) -> str:
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)


class ConvAutoencoder(nn.Module):
    def __init__(self, cfg: Config) -> None:
        super().__init__()
        self.noise = cfg.noise
        self.encoder = nn.Sequential(
            nn.Conv1d(cfg.channels, 16, 7, stride=2, padding=3), nn.GELU(),
            nn.Conv1d(16, 32, 7, stride=2, padding=3), nn.GELU(),
            nn.Flatten(), nn.Linear(32 * cfg.window // 4, cfg.latent),
        )
        self.expand = nn.Linear(cfg.latent, 32 * cfg.window // 4)
        self.decoder = nn.Sequential(
            nn.ConvTranspose1d(32, 16, 4, stride=2, padding=1), nn.GELU(),
            nn.ConvTranspose1d(16, cfg.channels, 4, stride=2, padding=1),
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if self.training and self.noise > 0:
            x = x + self.noise * torch.randn_like(x)
        z = self.encoder(x)
        return self.decoder(self.expand(z).unflatten(1, (32, -1))), z


def make_windows(n: int, cfg: Config, anomalous: float, seed: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 4 * np.pi, cfg.window)
    phase = rng.uniform(0, 2 * np.pi, (n, 1, 1))
    gain = 1 + 0.2 * rng.standard_normal((n, cfg.channels, 1))
    x = gain * np.sin(t[None, None] * (1 + np.arange(cfg.channels)[None, :, None] / 2) + phase)
    x += 0.05 * rng.standard_normal(x.shape)
    y = rng.random(n) < anomalous
    for i in np.flatnonzero(y):
        at, channel = rng.integers(8, cfg.window - 8), rng.integers(cfg.channels)
        if rng.random() < 0.5:
            x[i, channel, at : at + 5] += rng.choice([-1, 1]) * 1.5
        else:
            x[i, channel, at:] = x[i, channel, at]
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.long)


def normalise(train: Tensor, *others: Tensor) -> list[Tensor]:
    mean, std = train.mean((0, 2), keepdim=True), train.std((0, 2), keepdim=True)
    return [(x - mean) / std for x in (train, *others)]


@torch.no_grad()
def score(model: nn.Module, loader: DataLoader, device: torch.device) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    model.eval()
    scores, latents, labels = [], [], []
    for x, y in loader:
        x = x.to(device, non_blocking=True)
        recon, z = model(x)
        scores.append((recon - x).pow(2).mean(dim=(1, 2)).cpu().numpy())
        latents.append(z.cpu().numpy())
        labels.extend(y.tolist())
    return np.concatenate(scores), np.concatenate(latents), np.array(labels)


def auroc(scores: Tensor, labels: Tensor) -> float:
    order = scores.argsort()
    ranks = torch.empty_like(scores)
    ranks[order] = torch.arange(1, len(scores) + 1, dtype=scores.dtype, device=scores.device)
    positive = labels == 1
    n_pos, n_neg = positive.sum(), (~positive).sum()
    if n_pos == 0 or n_neg == 0:
        return float("nan")
    return ((ranks[positive].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg)).item()


class Mahalanobis:
    """Distance of the latent code from the normal ones."""

    def fit(self, z: Tensor) -> Mahalanobis:
        self.mean = z.mean(0)
        cov = torch.cov(z.T) + 1e-3 * torch.eye(z.size(1), device=z.device)
        self.precision = torch.linalg.inv(cov)
        return self

    def __call__(self, z: Tensor) -> Tensor:
        d = z - self.mean
        return torch.einsum("ni,ij,nj->n", d, self.precision, d).clamp_min(0).sqrt()


def best_f1(scores: Tensor, labels: Tensor, steps: int = 50) -> tuple[float, float]:
    best, at = 0.0, 0.0
    for q in torch.linspace(0.5, 0.999, steps):
        threshold = torch.quantile(scores, q.item())
        pred = scores > threshold
        tp = (pred & (labels == 1)).sum().item()
        precision = tp / max(pred.sum().item(), 1)
        recall = tp / max((labels == 1).sum().item(), 1)
        f1 = 2 * precision * recall / max(precision + recall, 1e-8)
        if f1 > best:
            best, at = f1, threshold.item()
    return best, at


def train_epoch(model: nn.Module, loader: DataLoader, optimizer, device, epoch: int) -> float:
    losses = AverageMeter("Loss", ":.4e")
    norms = AverageMeter("Grad", ":.3f")
    model.train()
    for i, (x, _) in enumerate(loader):
        x = x.to(device, non_blocking=True)
        recon, z = model(x)
        loss = nn.functional.mse_loss(recon, x) + 1e-4 * z.pow(2).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        losses.update(loss.item(), x.size(0))
        norms.update(norm.detach(), x.size(0))
        if i % 8 == 0:
            print(f"Epoch [{epoch}][{i}/{len(loader)}]", losses, norms, sep="\t")
    return losses.avg


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in vars(Config()).items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    cfg = Config(**vars(parser.parse_args()))
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    (x_train, y_train), (x_val, y_val) = make_windows(1200, cfg, 0.0, 0), make_windows(300, cfg, 0.0, 1)
    x_test, y_test = make_windows(400, cfg, 0.15, 2)
    x_train, x_val, x_test = normalise(x_train, x_val, x_test)
    pin = device.type == "cuda"
    train = DataLoader(TensorDataset(x_train, y_train), cfg.batch_size, shuffle=True, pin_memory=pin)
    val = DataLoader(TensorDataset(x_val, y_val), cfg.batch_size, pin_memory=pin)
    test = DataLoader(TensorDataset(x_test, y_test), cfg.batch_size, pin_memory=pin)

    model = ConvAutoencoder(cfg).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    with TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "best.pt"
        best = float("inf")
        for epoch in range(cfg.epochs):
            train_epoch(model, train, optimizer, device, epoch)
            val_scores, _, _ = score(model, val, device)
            if val_scores.mean() < best:
                best = val_scores.mean()
                torch.save({"model": model.state_dict(), "epoch": epoch, "score": float(best)}, checkpoint)
        state = torch.load(checkpoint, map_location=device)
        model.load_state_dict(state["model"])

    val_scores, val_latents, _ = score(model, val, device)
    test_scores, test_latents, labels = score(model, test, device)
    threshold = np.percentile(val_scores, cfg.percentile)
    flagged = test_scores > threshold
    maha = Mahalanobis().fit(torch.from_numpy(val_latents).to(device))
    distance = maha(torch.from_numpy(test_latents).to(device))
    target = torch.from_numpy(labels).to(device)
    f1, at = best_f1(distance, target)
    report = {
        "epoch": state["epoch"],
        "threshold": float(threshold),
        "flagged": int(flagged.sum()),
        "precision": float((flagged & (labels == 1)).sum() / max(flagged.sum(), 1)),
        "auroc": auroc(torch.as_tensor(test_scores, device=device), target),
        "auroc_latent": auroc(distance, target),
        "best_f1_latent": f1,
        "threshold_latent": at,
        "worst": distance.topk(3).indices.tolist(),
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
