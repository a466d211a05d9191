"""Evaluate a classifier in many ways: confusion matrix, top-k, F1, calibration, retrieval."""

from __future__ import annotations

import argparse
import json
from abc import ABC, abstractmethod
from typing import Any, Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset


class Metric(ABC):
    """State on the device of the model, a number at the end."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.reset()

    @abstractmethod
    def reset(self) -> None: ...

    @abstractmethod
    def update(self, logits: Tensor, target: Tensor) -> None: ...

    @abstractmethod
    def compute(self) -> Any: ...


class Accuracy(Metric):
    def __init__(self, device: torch.device, topk: tuple[int, ...] = (1, 5)) -> None:
        self.topk = topk
        super().__init__(device)

    def reset(self) -> None:
        self.correct = {k: 0 for k in self.topk}
        self.total = 0

    def update(self, logits: Tensor, target: Tensor) -> None:
        _, pred = logits.topk(max(self.topk), dim=1)
        hit = pred == target[:, None]
        for k in self.topk:
            self.correct[k] += hit[:, :k].any(dim=1).sum().item()
        self.total += len(target)

    def compute(self) -> dict[str, float]:
        return {f"top{k}": count / self.total for k, count in self.correct.items()}


class ConfusionMatrix(Metric):
    def __init__(self, device: torch.device, num_classes: int) -> None:
        self.num_classes = num_classes
        super().__init__(device)

    def reset(self) -> None:
        self.matrix = torch.zeros(self.num_classes, self.num_classes, dtype=torch.long, device=self.device)

    def update(self, logits: Tensor, target: Tensor) -> None:
        pred = logits.argmax(dim=1)
        valid = (target >= 0) & (target < self.num_classes)
        index = self.num_classes * target[valid] + pred[valid]
        counts = torch.bincount(index, minlength=self.num_classes**2)
        self.matrix += counts.reshape(self.num_classes, self.num_classes)

    def compute(self) -> dict[str, Any]:
        matrix = self.matrix.float()
        tp = matrix.diag()
        precision = tp / matrix.sum(0).clamp(min=1)
        recall = tp / matrix.sum(1).clamp(min=1)
        f1 = 2 * precision * recall / (precision + recall).clamp(min=1e-8)
        worst = int(f1.argmin())
        return {
            "macro_f1": f1.mean().item(),
            "per_class_f1": [round(v, 4) for v in f1.tolist()],
            "worst_class": worst,
            "worst_confused_with": self.matrix[worst].cpu().numpy().argsort()[::-1][:2].tolist(),
        }


class Calibration(Metric):
    """Expected calibration error over equal-width bins; everything stays on the device."""

    bins = 10

    def reset(self) -> None:
        self.confidence = torch.zeros(self.bins, device=self.device)
        self.accuracy = torch.zeros(self.bins, device=self.device)
        self.count = torch.zeros(self.bins, device=self.device)

    def update(self, logits: Tensor, target: Tensor) -> None:
        confidence, pred = logits.softmax(dim=1).max(dim=1)
        which = (confidence * self.bins).long().clamp(max=self.bins - 1)
        self.confidence.index_add_(0, which, confidence)
        self.accuracy.index_add_(0, which, (pred == target).float())
        self.count.index_add_(0, which, torch.ones_like(confidence))

    def compute(self) -> float:
        gap = (self.confidence - self.accuracy).abs().sum() / self.count.sum()
        return float(gap)


class BinaryAUC(Metric):
    """One class against the rest; scores are gathered and ranked on the host."""

    def reset(self) -> None:
        self.scores: list[np.ndarray] = []
        self.labels: list[np.ndarray] = []

    def update(self, logits: Tensor, target: Tensor) -> None:
        self.scores.append(logits.softmax(1)[:, 0].detach().cpu().numpy())
        self.labels.append((target == 0).cpu().numpy())

    def compute(self) -> float:
        scores, labels = np.concatenate(self.scores), np.concatenate(self.labels)
        ranks = np.empty(len(scores))
        ranks[scores.argsort()] = np.arange(1, len(scores) + 1)
        positives = labels.sum().item()
        negatives = len(labels) - positives
        if positives == 0 or negatives == 0:
            return float("nan")
        return float((ranks[labels].sum() - positives * (positives + 1) / 2) / (positives * negatives))


class PerClassLoss(Metric):
    def reset(self) -> None:
        self.losses: dict[int, list[float]] = {}

    def update(self, logits: Tensor, target: Tensor) -> None:
        losses = nn.functional.cross_entropy(logits, target, reduction="none")
        for c in target.unique():
            self.losses.setdefault(c.item(), []).append(losses[target == c].mean().item())

    def compute(self) -> dict[int, float]:
        return {c: round(float(np.mean(values)), 4) for c, values in sorted(self.losses.items())}


class Stream(IterableDataset):
    def __init__(self, batches: int, batch_size: int, dim: int, classes: int) -> None:
        self.batches, self.batch_size, self.dim, self.classes = batches, batch_size, dim, classes

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        g = torch.Generator().manual_seed(7)
        centres = torch.randn(self.classes, self.dim, generator=g)
        for _ in range(self.batches):
            y = torch.randint(0, self.classes, (self.batch_size,), generator=g)
            x = centres[y] + 1.5 * torch.randn(self.batch_size, self.dim, generator=g)
            assert x.isfinite().all() and y.max().item() < self.classes
            yield {"x": x, "y": y}


class MLP(nn.Module):
    def __init__(self, dim: int, classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.head = nn.Linear(64, classes)

    def forward(self, x: Tensor, return_features: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        features = self.body(x)
        return (self.head(features), features) if return_features else self.head(features)


def retrieval(features: Tensor, labels: Tensor, ks: tuple[int, ...] = (1, 5)) -> dict[str, float]:
    features = nn.functional.normalize(features, dim=1)
    similarity = features @ features.T
    similarity.fill_diagonal_(-1)
    recalls = {k: 0.0 for k in ks}
    average_precision = []
    for i in range(min(len(features), 60)):
        order = similarity[i].argsort(descending=True)
        relevant = (labels[order] == labels[i]).float()
        for k in ks:
            recalls[k] += float(relevant[:k].sum() > 0)
        precision_at = relevant.cumsum(0) / torch.arange(1, len(relevant) + 1, device=relevant.device)
        average_precision.append((precision_at * relevant).sum() / relevant.sum().clamp(min=1))
    n = len(average_precision)
    return {**{f"R@{k}": v / n for k, v in recalls.items()}, "mAP": torch.stack(average_precision).mean().item()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--classes", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Stream(args.batches, args.batch_size, 32, args.classes), batch_size=None, pin_memory=torch.cuda.is_available())
    model = MLP(32, args.classes).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for batch in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch["x"].to(device)), batch["y"].to(device)).backward()
        optimizer.step()

    model.eval()
    metrics: dict[str, Metric] = {
        "accuracy": Accuracy(device),
        "confusion": ConfusionMatrix(device, args.classes),
        "ece": Calibration(device),
        "auc": BinaryAUC(device),
        "loss": PerClassLoss(device),
    }
    bank, bank_labels = [], []
    with torch.inference_mode():
        for batch in loader:
            x, y = batch["x"].to(device, non_blocking=True), batch["y"].to(device, non_blocking=True)
            logits, features = model(x, return_features=True)
            for metric in metrics.values():
                metric.update(logits, y)
            bank.append(features)
            bank_labels.append(y)
    report = {name: metric.compute() for name, metric in metrics.items()}
    report["retrieval"] = retrieval(torch.cat(bank), torch.cat(bank_labels))
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
