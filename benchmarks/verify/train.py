"""Training with the usual habits, for `perflint verify`: the host prepares images, a small CNN learns in bfloat16."""

from __future__ import annotations

import argparse

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Block(nn.Module):
    def __init__(self, width: int, out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, out, 3, stride=stride, padding=1)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(x)))


class Net(nn.Module):
    def __init__(self, classes: int = 100) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(3, 64), Block(64, 128, 2), Block(128, 256, 2), Block(256, 256, 2))
        self.head = nn.Linear(256, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(x).mean((2, 3)))


class Images(Dataset):
    """Random images of 100 classes, each with its own tint, flipped and cropped on the host."""

    def __init__(self, length: int, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.labels = self.random.integers(0, 100, length)
        self.tints = np.random.default_rng(0).standard_normal((100, 3, 1, 1), dtype=np.float32)
        self.image = self.random.standard_normal((3, 104, 104), dtype=np.float32)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        top, left, flip = self.random.integers(0, 8, 3)
        image = self.image[:, top : top + 96, left : left + 96]
        image = image[..., ::-1] if flip % 2 else image
        label = self.labels[index]
        return torch.from_numpy(image + self.tints[label]), int(label)


def train(model: nn.Module, images: Images, batch: int, device: torch.device) -> float:
    loader = DataLoader(images, batch, shuffle=True, pin_memory=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    total = 0.0
    for x, y in loader:
        x = x.to(device, memory_format=torch.channels_last)
        y = y.to(device)
        weight = torch.ones(100).to(x.device)
        with torch.cuda.amp.autocast(dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y, weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def accuracy(model: nn.Module, images: Images, batch: int, device: torch.device) -> float:
    loader = DataLoader(images, batch, pin_memory=True)
    model.eval()
    correct = 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(images)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device(options.device)
    model = Net().to(device, memory_format=torch.channels_last)
    training, test = Images(options.steps * options.batch, 1), Images(4 * options.batch, 2)
    print(f"loss {train(model, training, options.batch, device):.4f}")
    print(f"accuracy {accuracy(model, test, options.batch, device):.3f}")


if __name__ == "__main__":
    main()
