"""Branches on tensors in compiled code."""

import torch
from torch import nn


@torch.compile
def clip(x: torch.Tensor) -> torch.Tensor:
    if x.norm() > 1:  # error: TPF702
        x = x / x.norm()
    y = x if (x > 0).all() else -x  # error: TPF702
    return y * bool(x.sum() > 0)  # error: TPF702


class Checked(nn.Module):
    def forward(self, x: torch.Tensor, limit: float = 1.0) -> torch.Tensor:
        if torch.isnan(x).any():  # error: TPF702
            raise ValueError("not a number")
        assert (x >= 0).all(), f"of shape {x.shape}"  # error: TPF702
        small = not x.max() > limit  # error: TPF702
        found = 3 in x  # error: TPF702
        return x * small * found


def build() -> nn.Module:
    model = Checked()
    model.compile(mode="default")
    return model


@torch.compile
def on_the_host(n: int) -> int:
    order = torch.randperm(n)
    return 1 if order[0] > order[1] else 2  # error: TPF702


# Look-alikes


def not_compiled(x: torch.Tensor) -> torch.Tensor:
    return x if x.sum() > 0 else -x


@torch.compile
def known_while_tracing(x: torch.Tensor, mask: torch.Tensor | None = None, training: bool = False) -> torch.Tensor:
    if x.shape[0] > 1 and x.is_cuda and x.requires_grad:
        x = x + 1
    if mask is not None and training:
        x = x * mask
    return x if isinstance(mask, torch.Tensor) else -x


@torch.compile
def asserted(x: torch.Tensor) -> torch.Tensor:
    assert (x >= 0).all()
    assert torch.isfinite(x).all(), "finite"
    return x.sqrt()


@torch.compile
def chosen_on_the_device(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.sum() > 0, x, -x).masked_fill(x > 3, 0.0)


@torch.compile
def guarded(x: torch.Tensor) -> torch.Tensor:
    if not torch.compiler.is_compiling() and (x < 0).any():
        raise ValueError("negative")
    return x.sqrt()


@torch.compiler.disable(recursive=False)
def kept_out(x: torch.Tensor) -> torch.Tensor:
    return x if x.sum() > 0 else -x


def around(x: torch.Tensor) -> torch.Tensor:
    y = clip(x)
    return y if y.sum() > 0 else -y
