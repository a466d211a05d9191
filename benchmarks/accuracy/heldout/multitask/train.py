"""Multi-task training (digit, angle, mask) under a curriculum of noise, with two ways to weigh the losses."""
import argparse
import math
import random
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from utils import (
    EMA,
    DynamicWeightAverage,
    Meters,
    SummaryWriter,
    UncertaintyWeighting,
    clip_gradients,
    first_bad_gradient,
    global_grad_norm,
)

TASKS = ["shape", "angle", "mask"]


class Curriculum:
    """Noise grows with the competence; samples that are too hard for it are left out."""

    def __init__(self, total_steps: int, start: float = 0.2):
        self.total_steps, self.start = total_steps, start
        self.step_num = 0

    @property
    def competence(self) -> float:
        frac = min(1.0, self.step_num / self.total_steps)
        return math.sqrt(frac * (1 - self.start**2) + self.start**2)

    def step(self) -> None:
        self.step_num += 1


class Stream:
    """Batches made on the device."""

    def __init__(self, batch_size: int, size: int, device: torch.device):
        self.batch_size, self.size, self.device = batch_size, size, device
        axis = torch.linspace(-1, 1, size, device=device)
        self.yy, self.xx = torch.meshgrid(axis, axis, indexing="ij")

    def next(self, noise: float):
        b = self.batch_size
        shape = torch.randint(0, 3, (b,), device=self.device)
        angle = torch.rand(b, device=self.device) * math.pi
        c, s = angle.cos().view(-1, 1, 1), angle.sin().view(-1, 1, 1)
        u, v = c * self.xx + s * self.yy, -s * self.xx + c * self.yy
        forms = torch.stack([u.abs() + 3 * v.abs() < 0.8, (u.abs() < 0.7) & (v.abs() < 0.2), u**2 + 6 * v**2 < 0.5], 1)
        mask = forms[torch.arange(b, device=self.device), shape].float()
        difficulty = torch.rand(b, device=self.device)
        image = mask + noise * difficulty.view(-1, 1, 1) * torch.randn_like(mask)
        target = torch.stack([torch.cos(2 * angle), torch.sin(2 * angle)], dim=1)
        return {"image": image.unsqueeze(1), "shape": shape, "angle": target, "mask": mask, "difficulty": difficulty}


class MultiHead(nn.Module):
    def __init__(self, width: int = 24):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.body = nn.Sequential(
            *[nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()) for _ in range(3)]
        )
        self.heads = nn.ModuleDict({
            "shape": nn.Linear(2 * width, 3),
            "angle": nn.Linear(2 * width, 2),
            "mask": nn.Conv2d(width, 1, 1),
        })

    def forward(self, x):
        h = self.body(self.stem(x))
        pooled = torch.cat([h.mean((2, 3)), h.amax((2, 3))], dim=1)
        return {
            "shape": self.heads["shape"](pooled),
            "angle": F.normalize(self.heads["angle"](pooled), dim=1),
            "mask": self.heads["mask"](h).squeeze(1),
        }


def losses_of(out, batch, keep=None):
    shape = F.cross_entropy(out["shape"], batch["shape"], reduction="none")
    angle = (out["angle"] - batch["angle"]).pow(2).sum(1)
    mask = F.binary_cross_entropy_with_logits(out["mask"], batch["mask"], reduction="none").mean((1, 2))
    if keep is not None:
        if keep.sum() == 0:
            keep = torch.ones_like(keep)
        shape, angle, mask = shape[keep], angle[keep], mask[keep]
    return {"shape": shape.mean(), "angle": angle.mean(), "mask": mask.mean()}


@torch.no_grad()
def validate(model, stream, batches, noise):
    model.eval()
    hits = torch.zeros((), device=stream.device)
    inter = torch.zeros_like(hits)
    union = torch.zeros_like(hits)
    errors = []
    for _ in range(batches):
        batch = stream.next(noise)
        out = model(batch["image"])
        hits += (out["shape"].argmax(1) == batch["shape"]).sum()
        pred, gold = out["mask"] > 0, batch["mask"] > 0.5
        inter += (pred & gold).sum()
        union += (pred | gold).sum()
        cosine = (out["angle"] * batch["angle"]).sum(1).clamp(-1, 1)
        errors += torch.rad2deg(cosine.acos() / 2).tolist()
    model.train()
    return {
        "acc": hits.item() / (batches * stream.batch_size),
        "iou": (inter / union.clamp(min=1)).item(),
        "angle_err": float(np.median(errors)),
    }


def run(weighting_name, args, device, writer):
    model = MultiHead().to(device)
    weighting = DynamicWeightAverage(TASKS)
    if weighting_name == "uncertainty":
        weighting = UncertaintyWeighting(TASKS).to(device)
    params = list(model.parameters())
    if isinstance(weighting, nn.Module):
        params += list(weighting.parameters())
    optimizer = torch.optim.SGD(params, lr=args.lr, momentum=0.9, nesterov=True)
    ema = EMA(model)
    curriculum = Curriculum(args.epochs * args.steps_per_epoch)
    stream = Stream(args.batch_size, args.size, device)
    meters = Meters()
    best = -float("inf")
    for epoch in range(args.epochs):
        skipped = 0
        for it in range(args.steps_per_epoch):
            step = epoch * args.steps_per_epoch + it
            batch = stream.next(noise=args.noise * curriculum.competence)
            keep = batch["difficulty"] <= curriculum.competence
            losses = losses_of(model(batch["image"]), batch, keep)
            loss = weighting(losses)
            if not math.isfinite(loss):
                print(f"loss is {loss}, stopping")
                return best
            optimizer.zero_grad()
            loss.backward()
            bad = first_bad_gradient(model) if step % args.check_every == 0 else None
            if bad is not None:
                skipped += 1
                continue
            norms = clip_gradients(model, args.clip)
            optimizer.step()
            ema.update(model)
            curriculum.step()
            meters.update({**losses, "total": loss})
            if step % args.log_every == 0:
                writer.add_scalar(f"{weighting_name}/loss", loss, step)
                writer.add_scalars(f"{weighting_name}/losses", losses, step)
                writer.add_scalar(f"{weighting_name}/grad_norm", global_grad_norm(model.parameters()), step)
                writer.add_scalar(f"{weighting_name}/max_norm", max(norms), step)
                writer.add_scalar(f"{weighting_name}/kept", keep.float().mean(), step)
        averages = meters.averages()
        if isinstance(weighting, DynamicWeightAverage):
            weighting.step(averages)
        writer.add_histogram(f"{weighting_name}/stem", model.stem[0].weight, epoch)
        ema.apply(model)
        metrics = validate(model, stream, args.val_batches, args.noise)
        ema.restore(model)
        best = max(best, metrics["acc"] + metrics["iou"])
        shown = " ".join(f"{k} {v:.3f}" for k, v in {**averages, **metrics}.items())
        weights = {k: round(v, 2) for k, v in weighting.weights().items()}
        print(f"[{weighting_name}] epoch {epoch} skipped {skipped} {shown} weights {weights}")
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps-per-epoch", type=int, default=20)
    parser.add_argument("--val-batches", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--size", type=int, default=24)
    parser.add_argument("--noise", type=float, default=0.5)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--check-every", type=int, default=5)
    parser.add_argument("--log-every", type=int, default=10)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with tempfile.TemporaryDirectory() as log_dir:
        writer = SummaryWriter(log_dir)
        scores = {name: run(name, args, device, writer) for name in ("uncertainty", "dwa")}
        writer.close()
    print({k: round(v, 3) for k, v in scores.items()})


if __name__ == "__main__":
    main()
