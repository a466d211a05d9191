"""Trains the classifier: `python train.py DATA`."""

import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from evaluate import evaluate
from model import Classifier


def balance(loss: torch.Tensor, labels: torch.Tensor, rare: torch.Tensor) -> torch.Tensor:
    """Doubles the loss of rare classes."""
    weight = torch.ones(len(labels)).to(loss.device)
    weight[torch.isin(labels, rare)] = 2.0
    return (loss * weight).mean()


def train_epoch(model, loader, optimizer, scaler, rare, device):
    model.train()
    running = 0.0
    for step, (images, labels) in enumerate(loader):
        images = images.to(device)
        labels = labels.to(device)
        with torch.cuda.amp.autocast(dtype=torch.bfloat16):
            scores = model(images)
            loss = balance(F.cross_entropy(scores, labels, reduction="none"), labels, rare)
        if torch.isnan(loss):
            continue
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        running += loss.item()
        hits = (scores.argmax(dim=1) == labels).float().mean()
        print(f"step {step}: accuracy {hits:.3f}")
    return running / len(loader)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    device = torch.device("cuda")
    load = transforms.Compose([transforms.Resize((64, 64)), transforms.ToTensor()])
    train_loader = DataLoader(
        datasets.ImageFolder(f"{options.data}/train", load), batch_size=256, shuffle=True, num_workers=8, pin_memory=True
    )
    val_loader = DataLoader(
        datasets.ImageFolder(f"{options.data}/val", load), batch_size=256, num_workers=8, pin_memory=True
    )
    model = Classifier().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    scaler = torch.cuda.amp.GradScaler()
    rare = torch.tensor([7, 42, 113], device=device)
    for epoch in range(options.epochs):
        loss = train_epoch(model, train_loader, optimizer, scaler, rare, device)
        accuracy = evaluate(model, val_loader, device)
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.4f}")
        torch.save(model.state_dict(), "classifier.pt")


if __name__ == "__main__":
    main()
