"""Trains a small image classifier on made-up images, as slowly as such scripts often are."""

import csv
import io
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

BATCH, CLASSES, SIDE = 128, 100, 64


class Images(Dataset):
    def __init__(self, count: int):
        self.images = np.random.default_rng(0).integers(0, 256, (512, 3, SIDE, SIDE), dtype=np.uint8)
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int):
        image = torch.from_numpy(self.images[index % 512]).float() / 255
        return image, index % CLASSES


class Block(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int = 1):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inside, outside, 3, stride, padding=1),
            nn.BatchNorm2d(outside),
            nn.ReLU(inplace=True),
            nn.Conv2d(outside, outside, 3, padding=1),
            nn.BatchNorm2d(outside),
        )
        self.skip = nn.Conv2d(inside, outside, 1, stride) if inside != outside else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.body(x) + self.skip(x))


def gradient_norm(model: nn.Module) -> float:
    total = 0.0
    for parameter in model.parameters():
        if parameter.grad is not None:
            total += parameter.grad.norm().item() ** 2
    return total**0.5


def log(history: list, step: int, loss: float, norm: float, accuracy: float) -> None:
    history.append((step, loss, norm, accuracy))
    losses = np.array([row[1] for row in history] * 2000)
    row = [step, loss, norm, accuracy, *np.percentile(losses, [5, 50, 95])]
    csv.writer(io.StringIO()).writerow(row)


def train(steps: int, device: str) -> None:
    torch.manual_seed(0)
    stages = [Block(64, 64), Block(64, 128, 2), Block(128, 256, 2), Block(256, 256)]
    model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = nn.Sequential(model, nn.Linear(256, CLASSES)).to(device)
    loader = DataLoader(Images(steps * BATCH), BATCH, num_workers=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    history: list = []
    correct = 0
    for step, (images, labels) in enumerate(loader):
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        norm = gradient_norm(model)
        optimizer.step()
        correct += (logits.argmax(1) == labels).sum().item()
        log(history, step, loss.item(), norm, correct / (step + 1) / BATCH)
    print(f"loss {history[-1][1]:.3f}")


if __name__ == "__main__":
    train(int(sys.argv[1]) if len(sys.argv) > 1 else 80, "cuda" if torch.cuda.is_available() else "cpu")
