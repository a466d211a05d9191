"""Training: 16 problems that tuning guides name, and look-alikes that cost nothing."""

import logging
import time

import numpy as np
import torch
import torch.nn.functional as F
from model import Encoder, Vision
from torch.utils.data import DataLoader, TensorDataset

logger = logging.getLogger(__name__)


def loaders(images, labels):
    data = TensorDataset(images, labels)
    slow = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)  # problem: batches that go to the GPU, not pinned
    fine = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)  # fine
    return slow, fine


def gradient_norm(model):
    total = 0.0
    for parameter in model.parameters():
        total += parameter.grad.norm().item() ** 2  # problem: a wait for each parameter
    return total**0.5


def train(model: Vision, slow: DataLoader, fine: DataLoader, device: torch.device):
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    weights = torch.ones(10).to(device)  # fine
    history, total = [], 0.0
    for step, (images, labels) in enumerate(fine):
        images = images.to(device)  # problem: a blocking copy of pinned memory
        labels = labels.to(device, non_blocking=True)  # fine
        noise = torch.randn(images.shape).to(device)  # problem: made on the CPU, then copied
        with torch.cuda.amp.autocast():  # problem: a deprecated API
            loss = F.cross_entropy(model(images + noise), labels, weight=weights)
        if torch.isnan(loss):  # problem: a test of a GPU value
            continue
        optimizer.zero_grad(set_to_none=False)  # problem: gradients are filled with zeros
        loss.backward()
        optimizer.step()
        total += loss.item()  # problem: a wait in each step
        history.append(loss)  # problem: the list keeps the graph of each step
        logger.info("loss %s", loss)  # problem: formatting reads the GPU
        torch.cuda.empty_cache()  # problem: memory is given back in each step
        torch.cuda.synchronize()  # problem: a wait in each step
        if step % 100 == 0:
            print("norm", gradient_norm(model))
            print("loss", loss.item())  # fine
    return total, history


def best(model: Vision, slow: DataLoader):
    model.eval()
    hits = 0
    for images, labels in slow:
        scores = model(images.cuda())  # problem: autograd records an evaluation
        wrong = scores[scores.argmax(1) != labels.cuda()]  # problem: a mask whose size the CPU waits for
        hits += len(labels) - len(wrong)
    return hits


@torch.no_grad()
def best_without_waits(model: Vision, slow: DataLoader):
    model.eval()
    hits = torch.zeros((), device="cuda")
    for images, labels in slow:
        scores = model(images.cuda())
        hits += (scores.argmax(1) == labels.cuda()).sum()
    return hits.item()  # fine


def on_the_cpu(rows: np.ndarray, loader: DataLoader):
    if (rows > 0).any():  # fine
        rows = rows[rows > 0]
    count = 0
    for _, labels in loader:
        count += labels.sum().item()  # fine
        picked = labels[labels > 3]  # fine
    return rows, count, picked


def timed(model: Vision, images):
    torch.cuda.synchronize()  # fine
    start = time.perf_counter()
    model(images)
    torch.cuda.synchronize()  # fine
    return time.perf_counter() - start


def main(images, labels):
    device = torch.device("cuda")
    model = torch.nn.DataParallel(Vision().to(device))  # problem: one process for several GPUs
    slow, fine = loaders(images, labels)
    train(model, slow, fine, device)
    encoder = Encoder().to(device)
    for epoch in range(3):
        faster = torch.compile(encoder)  # problem: compiled again in each turn
        faster(torch.ones(8, 128, 512, device=device))
    return best(model, slow), best_without_waits(model, slow), epoch
