"""Quantile regression with calibration. Runs alone or under torchrun:

    torchrun --nproc_per_node=2 quantile_ddp.py
"""
import argparse
import math
import os
import sys
from contextlib import nullcontext

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def setup():
    world_size = int(os.environ.get("WORLD_SIZE", 1))
    rank = int(os.environ.get("RANK", 0))
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
        device = torch.device("cuda", local_rank)
    else:
        device = torch.device("cpu")
    if world_size > 1:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return rank, world_size, device


def is_dist():
    return dist.is_available() and dist.is_initialized()


def is_main_process():
    return not is_dist() or dist.get_rank() == 0


def reduce_mean(tensor):
    if not is_dist():
        return tensor
    tensor = tensor.clone()
    dist.all_reduce(tensor, op=dist.ReduceOp.SUM)
    return tensor / dist.get_world_size()


def reduce_dict(values):
    with torch.no_grad():
        names = sorted(values.keys())
        stacked = reduce_mean(torch.stack([values[k] for k in names], dim=0))
        return dict(zip(names, stacked))


def gather_predictions(local):
    if not is_dist():
        return local
    parts = [torch.empty_like(local) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, local.contiguous())
    return torch.cat(parts)


def log(*args):
    if is_main_process():
        print(*args)
        sys.stdout.flush()


class Demand(Dataset):
    """Demand by hour, weekday and temperature: the noise depends on the hour."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        hour, day = rng.integers(0, 24, n), rng.integers(0, 7, n)
        temp = rng.normal(15, 8, n)
        mean = 10 + 4 * np.sin(2 * np.pi * hour / 24) + (day < 5) * 2 + 0.02 * (temp - 18) ** 2
        scale = 0.3 + np.abs(np.cos(2 * np.pi * hour / 24))
        y = mean + scale * rng.standard_t(5, n)
        self.x = np.stack([hour / 23, day / 6, temp / 20], 1).astype(np.float32)
        self.y = y.astype(np.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"x": torch.from_numpy(self.x[i]), "y": torch.tensor(self.y[i])}


class QuantileNet(nn.Module):
    """Quantiles as a median and positive steps away from it, so that they never cross."""

    def __init__(self, quantiles, hidden=64, freqs=6):
        super().__init__()
        self.register_buffer("quantiles", torch.tensor(quantiles))
        self.register_buffer("freqs", 2.0 ** torch.arange(freqs))
        self.middle = len(quantiles) // 2
        self.net = nn.Sequential(
            nn.Linear(3 * (2 * freqs + 1), hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, len(quantiles)),
        )

    def forward(self, x):
        angles = (x.unsqueeze(-1) * self.freqs * math.pi).flatten(1)
        raw = self.net(torch.cat([x, angles.sin(), angles.cos()], dim=1))
        m = self.middle
        steps = nn.functional.softplus(raw)
        up = raw[:, m : m + 1] + steps[:, m + 1 :].cumsum(1)
        down = raw[:, m : m + 1] - steps[:, :m].flip(1).cumsum(1).flip(1)
        return torch.cat([down, raw[:, m : m + 1], up], dim=1)


def pinball(pred, y, quantiles):
    error = y.unsqueeze(1) - pred
    return torch.maximum(quantiles * error, (quantiles - 1) * error).mean(0)


class CosineSchedule:
    def __init__(self, optimizer, base_lr, warmup, total):
        self.optimizer = optimizer
        steps = np.arange(total)
        cosine = 0.5 * base_lr * (1 + np.cos(np.pi * (steps - warmup) / max(total - warmup, 1)))
        self.table = np.where(steps < warmup, base_lr * (steps + 1) / warmup, cosine)

    def set(self, step):
        for group in self.optimizer.param_groups:
            group["lr"] = self.table[step]
        return self.table[step]


def train_one_epoch(model, loader, optimizer, schedule, device, epoch, args):
    model.train()
    module = model.module if hasattr(model, "module") else model
    sums = torch.zeros(len(QUANTILES), device=device)
    for it, batch in enumerate(loader):
        batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
        lr = schedule.set(epoch * len(loader) + it)
        sync = (it + 1) % args.accum == 0
        context = nullcontext() if sync or not isinstance(model, DDP) else model.no_sync()
        with context:
            per_quantile = pinball(model(batch["x"]), batch["y"], module.quantiles)
            loss = per_quantile.sum() / args.accum
            loss.backward()
        if sync:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        sums += per_quantile.detach()
        if it % args.print_freq == 0:
            reduced = reduce_dict({"loss": loss.detach(), "median": per_quantile[module.middle].detach()})
            if is_main_process():
                shown = " ".join(f"{k} {v.item():.4f}" for k, v in reduced.items())
                print(f"epoch {epoch} it {it} lr {lr:.2e} {shown}")
    return reduce_mean(sums / len(loader))


@torch.no_grad()
def collect(model, loader, device):
    model.eval()
    preds, targets = [], []
    for batch in loader:
        preds.append(model(batch["x"].to(device, non_blocking=True)))
        targets.append(batch["y"].to(device, non_blocking=True))
    return gather_predictions(torch.cat(preds)), gather_predictions(torch.cat(targets))


def coverage(pred, y):
    return (y.unsqueeze(1) <= pred).float().mean(0)


def conformal_offset(pred, y, alpha=0.1):
    """How much wider the outer interval must be to hold 1 - alpha of the calibration set."""
    scores = torch.maximum(pred[:, 0] - y, y - pred[:, -1])
    n = scores.numel()
    level = min(1.0, math.ceil((n + 1) * (1 - alpha)) / n)
    return torch.quantile(scores, level).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--accum", type=int, default=2)
    parser.add_argument("--print-freq", type=int, default=20)
    args = parser.parse_args()
    torch.manual_seed(0)
    rank, world_size, device = setup()
    train_set, cal_set, test_set = Demand(4096, 0), Demand(1024, 1), Demand(1024, 2)
    sampler = DistributedSampler(train_set, world_size, rank) if world_size > 1 else None
    pin = device.type == "cuda"
    loader = DataLoader(
        train_set, args.batch_size, shuffle=sampler is None, sampler=sampler, pin_memory=pin, drop_last=True
    )

    def eval_loader(dataset):
        part = DistributedSampler(dataset, world_size, rank, shuffle=False) if world_size > 1 else None
        return DataLoader(dataset, 256, sampler=part, pin_memory=pin)

    model = QuantileNet(QUANTILES).to(device)
    if world_size > 1:
        model = DDP(model, device_ids=[device.index] if device.type == "cuda" else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    schedule = CosineSchedule(optimizer, args.lr, len(loader) // 2, args.epochs * len(loader))
    for epoch in range(args.epochs):
        if sampler is not None:
            sampler.set_epoch(epoch)
        losses = train_one_epoch(model, loader, optimizer, schedule, device, epoch, args)
        pred, y = collect(model, eval_loader(cal_set), device)
        cov = coverage(pred, y)
        gap = (cov - torch.tensor(QUANTILES, device=device)).abs().max()
        log(f"epoch {epoch} pinball", [f"{v:.3f}" for v in losses.tolist()], f"worst calibration gap {gap:.3f}")
        if gap < 0.005:
            log("calibrated, done")
            break
    offset = conformal_offset(*collect(model, eval_loader(cal_set), device))
    pred, y = collect(model, eval_loader(test_set), device)
    inside = (y >= pred[:, 0] - offset) & (y <= pred[:, -1] + offset)
    width = (pred[:, -1] - pred[:, 0]).mean().item() + 2 * offset
    outliers = torch.nonzero(~inside).squeeze(1)
    log(f"offset {offset:.3f} inside {inside.float().mean().item():.3f} width {width:.2f} outside {len(outliers)}")
    if is_main_process() and len(outliers):
        worst = outliers[(y[outliers] - pred[outliers, 2]).abs().argmax()]
        log("furthest out:", test_set.x[worst.item()], y[worst].item(), pred[worst].cpu().numpy().round(2))
    if is_dist():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
