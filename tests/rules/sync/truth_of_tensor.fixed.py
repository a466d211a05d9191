"""Asking a device tensor for its truth."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Clamp(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.max() > 1:
            x = x / x.max()
        return x


class Checked(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.seen = nn.Buffer(torch.zeros((), dtype=torch.bool))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        torch._assert_async((x >= 0).all())
        torch._assert_async(torch.all(x <= 1), "out of range")
        torch._assert_async(x.byte().any().logical_not())
        torch._assert_async(~(x > 2).any())
        assert (x.sum(dim=1) > 0).any(), f"empty rows in {x.shape}"
        if not self.seen:
            x = x + 1
        return self.linear(x)


def solve(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a, b = a.cuda(), b.cuda()
    x = torch.zeros_like(b)
    error = (a @ x - b).norm()
    while error > 1e-6:
        x = x - 0.1 * (a @ x - b)
        error = (a @ x - b).norm()
    return x


def choices(x: torch.Tensor, limit: torch.Tensor) -> list[object]:
    x, limit = x.cuda(), limit.cuda()
    top = x.max()
    small = 0 if top < 1 else 1
    both = (top > 0) and small
    sure = bool(top > 0)
    within = 0 <= top <= 1
    among = top in [limit, small]
    among = among or top in tuple(x.unbind())
    found = 3 in x
    anywhere = any(part.sum() > 0 for part in x.unbind())
    kept = [name for name in ("a", "b") if top > 2]
    if 0 < top < 1:
        kept.append("c")
    return [small, both, sure, within, among, found, anywhere, kept]


def two_tests(x: torch.Tensor) -> torch.Tensor:
    x = x.cuda()
    if (x.min() < 0) | (x.max() > 1):
        x = x.clamp(0, 1)
    return x


def rows_of_tests(x: torch.Tensor, y: torch.Tensor, m: torch.Tensor, limit: int) -> torch.Tensor:
    x, y, m = x.cuda(), y.cuda(), m.cuda() > 0
    if limit > 0 and (x > 0).any() & (x < limit).all() and limit < 9:
        return x
    if not (x.any() | y.any()):
        return y
    if (
        (x == 0).any()
        # Zeros need another formula.
        | (x.sum() > 3)
    ):
        return x
    if (x[0] == 1).all() & (x[1] == 1).all():
        return x
    sure = bool(x.any() | y.any())
    return x if sure else y


def rows_that_stay(x: torch.Tensor, y: torch.Tensor, m: torch.Tensor) -> object:
    """The second test needs the first one, has effects, is on another device, or is itself the result."""
    x, y, m = x.cuda(), y.cuda(), m.cuda() > 0
    if m.any() and x[m].max() > 1:
        return x
    if m.any() and x.max() > 1:
        return x
    if (m == 1).all() and (x == y).all():
        return x
    if m.any() and x[0] > 1:
        return x
    if m.any() or (y := x * 2).any():
        return y
    if m.any() or (x.add_(1) > 2).all():
        return y
    if x.any() and not y.any():
        return y
    return x.any() or y.any()


# Look-alikes


def shapes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x, y = x.cuda(), y.cuda()
    assert x.shape == y.shape and x.dim() == 4
    if x.shape[0] > 1 and len(y) and x.numel() and x.is_cuda:
        return x + y
    return x if x.requires_grad else y


def flags(x: torch.Tensor, mask: torch.Tensor | None, training: bool = False, mode: str = "sum") -> torch.Tensor:
    x = x.cuda()
    if mask is not None and training:
        x = x * mask.cuda()
    if isinstance(x, torch.Tensor) and mode == "mean" and torch.is_tensor(mask):
        return x.mean()
    return x


def host(count: int) -> bool:
    order = torch.randperm(count)
    if order[0] > 1 or (order < 0).any():
        return True
    return bool(order.sum() > 3)


def arrays(values: np.ndarray) -> float:
    if values.max() > 1 and np.any(values < 0):
        return 0.0
    return 1.0


def on_device(x: torch.Tensor, limit: float) -> torch.Tensor:
    x = x.cuda()
    return torch.where(x > limit, x.clamp(max=limit), x) * (x > 0).any()


def lists_of_tensors(parts: list[torch.Tensor]) -> torch.Tensor | None:
    if not parts:
        return None
    return F.relu(torch.cat(parts).cuda()) if len(parts) > 1 else parts[0].cuda()


def names(x: torch.Tensor, options: dict[str, int], count: int) -> bool:
    return x.device.type in ("cuda", "cpu") and "a" in options and 0 <= count < 3 and x.shape[0] in (1, 2)


def anything(options: dict[str, bool]) -> bool:
    return any(options.values()) or all(value for value in options.values())


class CheckedInEagerRuns(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_compiling() and (x < 0).any():
            raise ValueError("negative")
        if not torch.compiler.is_compiling() and (x > 9).all():
            x = x / 9
        return x


def moved(x: torch.Tensor, scale: float | torch.Tensor) -> torch.Tensor:
    if isinstance(scale, float):
        scale = torch.tensor([scale])
    scale = scale.to(x.device)
    return x if (scale == 1).all() else x * scale


def made_where_asked(x: torch.Tensor, device: torch.device | str | None) -> int:
    if device is None:
        device = x.device
    found = torch.zeros(8, device=device)
    return 1 if found.any() else 0


def repaired(x: torch.Tensor) -> torch.Tensor:
    x = x.cuda()
    try:
        assert (x > 0).all()
    except AssertionError:
        return x.abs()
    return x


class Items(torch.utils.data.Dataset):
    def __getitem__(self, index: int) -> torch.Tensor:
        source = self.load(index)
        assert (source.clamp(min=0) >= 0).all()
        return source


def checked(batch: dict) -> None:
    lengths = batch["lengths"]
    assert torch.all(torch.le(lengths[:, 0], lengths[:, 1]))


def step_of_named_tensors(data, rows: torch.Tensor):
    """A mapping of tensors that no file declares: a tensor cannot be asked for a text."""
    data.batch = rows.cuda() if rows.is_cuda else data.read()
    if "weights" in data.batch or f"{data.kind}_weights" not in data.batch:
        return data.batch
    return None


def of_parts(parts: list, scores, values: list[np.ndarray]):
    kept = torch.cat(parts) > 0.5
    if kept.any():
        return kept
    if torch.from_numpy(np.concatenate(values)).all() or scores.all() or np.concatenate(values).any():
        return scores
    if kept[0] == 0:
        return values
    return None


def found_by_identity(x: torch.Tensor, parts: list[torch.Tensor], known: set[torch.Tensor]) -> bool:
    """Sets and dicts compare tensors only if their hashes are equal, which follow from the identity."""
    top = x.cuda().max()
    is_known = top in known or top in {x, top} or top not in {part: 1 for part in parts}
    return is_known or top in set(parts) or top in frozenset(parts)


class OneKindOfSample(torch.nn.Module):
    def validation_step(self, batch, batch_idx):
        image, titles, rates, sizes = batch
        assert all(title == titles[0] for title in titles)
        assert not any([rate != rates[0] for rate in rates[1:]])
        assert all(size == image[0] for size in sizes)
        assert all(size > sizes[0] for size in sizes)
        assert all(size == sizes[1] for size in sizes)
        return self(image)


def same_lengths(lengths: torch.Tensor) -> bool:
    lengths = lengths.cuda()
    return all(length == lengths[0] for length in lengths)
