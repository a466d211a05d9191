"""Reading a tensor one element at a time."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def lengths(mask: torch.Tensor) -> list[int]:
    counts = mask.cuda().sum(dim=1)
    return [int(count) for count in counts]  # error: TPF103


def scores(logits: torch.Tensor) -> list[float]:
    flat = logits.cuda().float().flatten()
    return [score.item() for score in flat]  # error: TPF103


def by_index(x: torch.Tensor) -> list[float]:
    x = x.cuda()
    out = []
    for i in range(x.shape[0]):
        out.append(float(x[i]))  # error: TPF103
    return out


def with_positions(x: torch.Tensor, names: list[str]) -> dict[str, float]:
    x = x.cuda()
    return {names[i]: x[i].item() for i, _ in enumerate(names)}  # error: TPF103


def of_losses(model: nn.Module, batches: list[torch.Tensor]) -> list[float]:
    losses = []
    for batch in batches:
        losses.append(model(batch.cuda()).float().mean())
    return [loss.item() for loss in losses]  # error: TPF103


def of_named_losses(out: torch.Tensor, y: torch.Tensor) -> dict[str, float]:
    out, y = out.cuda(), y.cuda()
    losses = {"mse": F.mse_loss(out, y), "l1": F.l1_loss(out, y)}
    return {name: loss.item() for name, loss in losses.items()}  # error: TPF103


def in_pairs(x: torch.Tensor, names: list[str]) -> None:
    x = x.cuda()
    for name, value in zip(names, x):
        print(name, value.item())  # error: TPF103


@torch.jit.script
def scripted(x: torch.Tensor) -> list[float]:
    flat = x.float().flatten()
    return [float(each) for each in flat]  # error: TPF103


def corners(box: torch.Tensor) -> tuple[int, int]:
    left, top, *_ = map(int, box.cuda())  # error: TPF103
    return left, top


def by_map(out: torch.Tensor, y: torch.Tensor) -> list[float]:
    out, y = out.cuda(), y.cuda()
    losses = {"mse": F.mse_loss(out, y), "l1": F.l1_loss(out, y)}
    first = list(map(torch.Tensor.item, out - y))  # error: TPF103
    return first + list(map(float, losses.values()))  # error: TPF103


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


def by_map_on_the_host(x: torch.Tensor, parts: list[str], array: np.ndarray) -> list[int]:
    sizes = map(int, x.cuda().shape)
    return [*sizes, *map(int, parts), *map(int, array), *map(int, x.cuda().cpu()), *map(float, x.cuda().tolist())]


def map_of_unpacked(rows: list[list[str]], x: torch.Tensor) -> list[int]:
    return list(map(int, *rows)) + list(map(int, *[x.cuda()]))


def rows_by_map(x: torch.Tensor) -> list[torch.Tensor]:
    return list(map(torch.relu, x.cuda()))


def one_number_per_batch(model: nn.Module, batches: list[torch.Tensor]) -> list[float]:
    # Another rule's: each iteration reads a number of its own, not an element of one tensor.
    return [model(batch.cuda()).mean().item() for batch in batches]


def rows_stay(x: torch.Tensor) -> list[torch.Tensor]:
    return [row * 2 for row in x.cuda()]


def of_several(count: int, width: int):
    rows = [torch.zeros(8, device="cuda") for _ in range(count)]
    kept = [x.item() for row in rows for x in row[:width]]  # error: TPF103
    changes = [float(x) for a, b in zip(rows, rows) if count for x in a - b]  # error: TPF103
    doubled = [2 * x.item() for row in rows for x in row]  # error: TPF103
    chosen = [x.item() for row in rows for x in row if count]  # error: TPF103
    return kept, changes, doubled, chosen
