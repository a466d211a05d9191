"""What layer sizes, biases before norms and unused attention weights cost on this machine's GPU.

Prints the rows of `perflint/rules/worth.toml`: medians of interleaved runs, in milliseconds.
Usage: python benchmarks/rules/layers.py [--device cpu --quick] [PREFIX …]  (only the rows whose name starts so)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from programs import train
from timing import OPTIONS, Pair, Run, main, tensor
from torch import nn


class Attention(nn.Module):
    """Self-attention that throws the weights away."""

    def __init__(self, weights: bool) -> None:
        super().__init__()
        self.inner, self.weights = nn.MultiheadAttention(512, 8, batch_first=True), weights

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, tokens, 512) to the same."""
        out: torch.Tensor = self.inner(x, x, x, need_weights=self.weights)[0]
        return out


class Encoder(nn.Module):
    """Six transformer layers of width 512."""

    def __init__(self, weights: bool) -> None:
        super().__init__()
        self.attention = nn.ModuleList(Attention(weights) for _ in range(6))
        self.mixing = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(512), nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)) for _ in range(6)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, tokens, 512) to the same."""
        for attention, mixing in zip(self.attention, self.mixing, strict=True):
            x = x + attention(x)
            x = x + mixing(x)
        return x


def whole_step(model: nn.Module, batch: torch.Tensor, dtype: torch.dtype | None) -> Run:
    """A training step with AdamW."""
    model = model.to(OPTIONS.device)

    def loss() -> torch.Tensor:
        out = model(batch)
        return (out[0] if isinstance(out, tuple) else out).float().mean()

    return train(model, loss, dtype)


def attention_weights() -> Iterator[Pair]:
    """`need_weights=True` against `False`."""
    for label, dtype in (("float32", None), ("bfloat16", torch.bfloat16)):
        condition = "float32" if dtype is None else "bfloat16 autocast"
        yield Pair(
            f"attention-weights-step-{label}",
            "TPF302",
            "need_weights=True against False in a training step",
            condition,
            "6 transformer layers of width 512, 8 × 1024 tokens, AdamW fused",
            lambda d=dtype: (  # type: ignore[misc]
                whole_step(Encoder(True), tensor(8, 1024, 512, dtype=torch.float32), d),
                whole_step(Encoder(False), tensor(8, 1024, 512, dtype=torch.float32), d),
            ),
            scope="step",
        )


def stack(layer: Callable[[bool], nn.Module], norm: Callable[[], nn.Module], bias: bool) -> nn.Sequential:
    """Ten times layer, norm and ReLU."""
    return nn.Sequential(*[each for _ in range(10) for each in (layer(bias), norm(), nn.ReLU())])


def biases() -> Iterator[Pair]:
    """A bias before a norm that cancels it."""
    kinds: list[tuple[str, str, str, Callable[[bool], nn.Module], Callable[[], nn.Module], tuple[int, ...]]] = [
        (
            "linear",
            "Linear bias before BatchNorm1d",
            "10 × (Linear(1024, 1024), BatchNorm1d, ReLU) on 4096 × 1024",
            lambda bias: nn.Linear(1024, 1024, bias=bias),
            lambda: nn.BatchNorm1d(1024),
            (4096, 1024),
        ),
        (
            "conv1d",
            "Conv1d bias before BatchNorm1d",
            "10 × (Conv1d(256, 256, 3), BatchNorm1d, ReLU) on 32 × 256 × 1024",
            lambda bias: nn.Conv1d(256, 256, 3, padding=1, bias=bias),
            lambda: nn.BatchNorm1d(256),
            (32, 256, 1024),
        ),
        (
            "instance-norm",
            "a convolution bias before InstanceNorm",
            "10 × (Conv2d(128, 128, 3), InstanceNorm2d, ReLU) on 32 × 128 × 56 × 56",
            lambda bias: nn.Conv2d(128, 128, 3, padding=1, bias=bias),
            lambda: nn.InstanceNorm2d(128),
            (32, 128, 56, 56),
        ),
    ]
    for kind, pattern, shape, layer, norm, size in kinds:
        for label, dtype in (("float32", None), ("bfloat16", torch.bfloat16)):
            yield Pair(
                f"bias-before-norm-{kind}-train-{label}",
                "TPF301",
                f"{pattern}, training",
                "float32" if dtype is None else "bfloat16 autocast",
                shape,
                lambda la=layer, no=norm, si=size, d=dtype: (  # type: ignore[misc]
                    whole_step(stack(la, no, True), tensor(*si, dtype=torch.float32), d),
                    whole_step(stack(la, no, False), tensor(*si, dtype=torch.float32), d),
                ),
                scope="step",
            )


def convolutional_step(width: int, format: str, last: bool, kernel: int = 3, size: int = 56, bias: bool = False) -> Run:
    """A training step of a stack of convolutions on 32 square images."""
    layout, count = torch.channels_last if last else torch.contiguous_format, 2 if OPTIONS.quick else 32
    layer = partial(nn.Conv2d, width, width, kernel, padding=kernel // 2)
    model = stack(lambda biased: layer(bias=biased), partial(nn.BatchNorm2d, width), bias)
    model = model.to(memory_format=layout)  # type: ignore[call-overload]
    images = tensor(count, width, size, size).contiguous(memory_format=layout)
    return whole_step(model, images, None if format == "float32" else torch.bfloat16)


def steps() -> Iterator[Pair]:
    """Whole training steps of stacks whose width no tile divides."""
    for width, padded in ((60, 64), (63, 64), (100, 104), (254, 256)):
        for label in ("float32", "bfloat16"):
            for last in (False, True):
                yield Pair(
                    f"conv-step-{width}-{label}{'-channels-last' if last else ''}",
                    "TPF351",
                    f"a training step with {width} channels against {padded}",
                    "float32 with TF32 in cuDNN" if label == "float32" else "bfloat16 autocast",
                    f"10 × (Conv2d(C, C, 3), BatchNorm2d, ReLU) on 32 × C × 56 × 56{', channels_last' if last else ''}",
                    lambda w=width, p=padded, f=label, cl=last: [convolutional_step(c, f, cl) for c in (w, p)],
                    "step",
                )
    for width, padded in ((300, 304), (1001, 1008)):

        def linears_of(w: int) -> Run:
            model = nn.Sequential(*[each for _ in range(8) for each in (nn.Linear(w, w), nn.GELU())])
            return whole_step(model, tensor(16384, w, dtype=torch.float32), torch.bfloat16)

        yield Pair(
            f"linear-step-{width}-bfloat16",
            "TPF351",
            f"a training step of width {width} against {padded}",
            "bfloat16 autocast",
            "8 × (Linear, GELU) on 16384 rows",
            lambda w=width, p=padded, make=linears_of: (make(w), make(p)),  # type: ignore[misc]
            scope="step",
        )


if __name__ == "__main__":
    main("layers", __doc__, (steps, attention_weights, biases))
