"""Reading a tensor one element at a time."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def lengths(mask: torch.Tensor) -> list[int]:
    counts = mask.cuda().sum(dim=1)
    return [int(count) for count in counts]


def scores(logits: torch.Tensor) -> list[float]:
    flat = logits.cuda().float().flatten()
    return flat.tolist()


def by_index(x: torch.Tensor) -> list[float]:
    x = x.cuda()
    out = []
    for i in range(x.shape[0]):
        out.append(float(x[i]))
    return out


def with_positions(x: torch.Tensor, names: list[str]) -> dict[str, float]:
    x = x.cuda()
    return {names[i]: x[i].item() for i, _ in enumerate(names)}


def of_losses(model: nn.Module, batches: list[torch.Tensor]) -> list[float]:
    losses = []
    for batch in batches:
        losses.append(model(batch.cuda()).float().mean())
    return torch.stack(losses).tolist() if losses else []


def of_named_losses(out: torch.Tensor, y: torch.Tensor) -> dict[str, float]:
    out, y = out.cuda(), y.cuda()
    losses = {"mse": F.mse_loss(out, y), "l1": F.l1_loss(out, y)}
    return {name: loss.item() for name, loss in losses.items()}


def in_pairs(x: torch.Tensor, names: list[str]) -> None:
    x = x.cuda()
    for name, value in zip(names, x):
        print(name, value.item())


@torch.jit.script
def scripted(x: torch.Tensor) -> list[float]:
    flat = x.float().flatten()
    return [float(each) for each in flat]


# Look-alikes


def all_at_once(x: torch.Tensor) -> list[float]:
    return x.cuda().flatten().tolist()


def after_one_copy(x: torch.Tensor) -> list[float]:
    x = x.cuda().cpu()
    return [t.item() for t in x]


def host_labels(count: int) -> list[int]:
    return [int(i) for i in torch.randperm(count)]


def of_an_array(values: np.ndarray) -> list[float]:
    return [value.item() for value in values]


def of_strings(parts: list[str]) -> list[int]:
    return [int(part) for part in parts]


def one_number_per_batch(model: nn.Module, batches: list[torch.Tensor]) -> list[float]:
    # Another rule's: each iteration reads a number of its own, not an element of one tensor.
    return [model(batch.cuda()).mean().item() for batch in batches]


def rows_stay(x: torch.Tensor) -> list[torch.Tensor]:
    return [row * 2 for row in x.cuda()]


def of_several(count: int, width: int):
    rows = [torch.zeros(8, device="cuda") for _ in range(count)]
    kept = [x for row in rows for x in row[:width].tolist()]
    changes = [x for a, b in zip(rows, rows) if count for x in (a - b).tolist()]
    doubled = [2 * x.item() for row in rows for x in row]
    chosen = [x.item() for row in rows for x in row if count]
    return kept, changes, doubled, chosen
