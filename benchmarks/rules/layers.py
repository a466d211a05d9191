"""What layer sizes, biases before norms and unused attention weights cost on this machine's GPU.

Prints the rows of `perflint/rules/worth.toml`: medians of interleaved runs, in milliseconds.
Usage: python benchmarks/rules/layers.py [--device cpu --quick] [PREFIX …]  (only the rows whose name starts so)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from programs import train
from timing import OPTIONS, Pair, Run, main, tensor
from torch import nn
from torch.nn import functional as F


def product(rows: int, inner: int, columns: int, dtype: torch.dtype) -> Run:
    """A matrix product as `nn.Linear` does it: the weight is (columns, inner)."""
    left, weight = tensor(rows, inner, dtype=dtype), tensor(columns, inner, dtype=dtype)
    return lambda: F.linear(left, weight)


def training(module: nn.Module, batch: torch.Tensor, dtype: torch.dtype | None = None) -> Run:
    """Forward and backward; autocast to `dtype` where one is given."""
    module = module.to(OPTIONS.device)

    def step() -> None:
        with torch.autocast(OPTIONS.device, dtype or torch.bfloat16, enabled=dtype is not None):
            out = module(batch)
        out = out[0] if isinstance(out, tuple) else out
        out.float().mean().backward()

    return step


def matmuls() -> Iterator[Pair]:
    """Sizes of linear layers."""
    sizes = [
        (4096, 1024, 1004, 1008),
        (4096, 1024, 1002, 1008),
        (4096, 1024, 1000, 1024),
        (65536, 100, 100, 104),
        (65536, 300, 300, 304),
        (65536, 30, 30, 32),
        (65536, 20, 20, 24),
        (65536, 768, 10, 16),
        (65536, 768, 100, 104),
        (65536, 768, 365, 368),
        (65536, 13, 64, 64),
        (65536, 515, 512, 512),
    ]
    dtypes = [("bfloat16", torch.bfloat16, False), ("float16", torch.float16, False), ("tf32", torch.float32, True)]
    for label, dtype, tf32 in dtypes:
        for rows, inner, columns, padded in sizes:
            better = inner if inner == 1024 or inner == 768 else -(-inner // 8) * 8
            yield Pair(
                f"linear-{inner}-{columns}-{label}",
                "TPF351",
                f"a matmul of {inner} × {columns} against {better} × {padded}",
                "float32 with TF32" if tf32 else label,
                f"{rows} rows",
                lambda r=rows, i=inner, c=columns, b=better, p=padded, d=dtype: (  # type: ignore[misc]
                    product(r, i, c, d),
                    product(r, b, p, d),
                ),
                tf32=tf32,
            )


def trained_linears() -> Iterator[Pair]:
    """Linear layers, forward and backward."""
    for width, padded in ((300, 304), (1001, 1008), (765, 768)):
        yield Pair(
            f"linear-train-{width}-bfloat16",
            "TPF351",
            f"Linear({width}, {width}) against {padded}, forward and backward",
            "bfloat16 autocast",
            f"16384 × {width}",
            lambda w=width, p=padded: (  # type: ignore[misc]
                training(nn.Linear(w, w), tensor(16384, w, dtype=torch.float32), torch.bfloat16),
                training(nn.Linear(p, p), tensor(16384, p, dtype=torch.float32), torch.bfloat16),
            ),
        )


def convolution(channels: int, out: int, kernel: int, dtype: torch.dtype, last: bool) -> Run:
    """A convolution's forward on 32 images of 56 × 56."""
    layout = torch.channels_last if last else torch.contiguous_format
    module = nn.Conv2d(channels, out, kernel, padding=kernel // 2, bias=False).to(OPTIONS.device, dtype)
    module.weight.data = module.weight.data.contiguous(memory_format=layout)
    batch = tensor(32, channels, 56, 56, dtype=dtype).contiguous(memory_format=layout)

    def run() -> None:
        with torch.no_grad():
            module(batch)

    return run


def convolutions() -> Iterator[Pair]:
    """Channels of convolutions."""
    square = [(20, 20, 3), (36, 36, 3), (100, 100, 3), (254, 254, 3), (100, 100, 1)]
    sizes = [*square, (30, 60, 3), (256, 255, 1), (3, 64, 7)]
    for label, dtype in (("bfloat16", torch.bfloat16), ("float32", torch.float32)):
        for last in (False, True):
            for channels, out, kernel in sizes:
                better, padded = -(-channels // 8) * 8, -(-out // 8) * 8
                yield Pair(
                    f"conv-{channels}-{out}-{kernel}x{kernel}-{label}{'-channels-last' if last else ''}",
                    "TPF351",
                    f"a convolution of {channels} to {out} channels against {better} to {padded}",
                    label if label == "bfloat16" else "float32 with TF32 in cuDNN",
                    f"{kernel} × {kernel}, 32 × C × 56 × 56, forward" + (", channels_last" if last else ""),
                    lambda c=channels, o=out, k=kernel, b=better, p=padded, d=dtype, cl=last: (  # type: ignore[misc]
                        convolution(c, o, k, d, cl),
                        convolution(b, p, k, d, cl),
                    ),
                )


def vocabularies() -> Iterator[Pair]:
    """Output heads over a vocabulary."""
    for label, dtype, tf32 in (("bfloat16", torch.bfloat16, False), ("tf32", torch.float32, True)):
        for size, padded in ((50264, 50304), (50260, 50304), (32003, 32064), (10001, 10048)):
            yield Pair(
                f"vocabulary-{size}-{label}",
                "TPF352",
                f"an output head of {size} tokens against {padded}",
                "float32 with TF32" if tf32 else label,
                f"4096 × 768 @ 768 × {size}",
                lambda s=size, p=padded, d=dtype: (  # type: ignore[misc]
                    product(4096, 768, s, d),
                    product(4096, 768, p, d),
                ),
                tf32=tf32,
            )
    ids = torch.randint(0, 50000, (8, 1024), device=OPTIONS.device)

    def lookup(size: int) -> Run:
        table = nn.Embedding(size, 768).to(OPTIONS.device)
        return lambda: torch.autograd.backward(table(ids).sum())

    yield Pair(
        "embedding-50257-train",
        "TPF352",
        "a lookup in an embedding of 50257 tokens against 50304, forward and backward",
        "float32",
        "8 × 1024 tokens, width 768",
        lambda: (lookup(50257), lookup(50304)),
    )


def heads() -> Iterator[Pair]:
    """Sizes of attention heads, and recurrent layers."""
    for size, padded in ((50, 56), (100, 104), (191, 192)):

        def attention(width: int) -> Run:
            query = tensor(8, 12, 1024, width, dtype=torch.bfloat16).requires_grad_()
            return lambda: torch.autograd.backward(F.scaled_dot_product_attention(query, query, query).sum())

        yield Pair(
            f"attention-head-{size}-bfloat16",
            "TPF351",
            f"attention with heads of {size} against {padded}, forward and backward",
            "bfloat16",
            f"8 × 12 × 1024 × {size}",
            lambda s=size, p=padded, a=attention: (a(s), a(p)),  # type: ignore[misc]
        )
    for width, padded in ((300, 304), (301, 304)):
        yield Pair(
            f"lstm-{width}-bfloat16",
            "TPF351",
            f"LSTM({width}, {width}) against {padded}, forward and backward",
            "bfloat16 autocast",
            f"64 × 128 × {width}",
            lambda w=width, p=padded: (  # type: ignore[misc]
                training(nn.LSTM(w, w, batch_first=True), tensor(64, 128, w, dtype=torch.float32), torch.bfloat16),
                training(nn.LSTM(p, p, batch_first=True), tensor(64, 128, p, dtype=torch.float32), torch.bfloat16),
            ),
        )


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
        for batch, tokens in ((16, 512), (8, 1024), (4, 2048)):
            yield Pair(
                f"attention-weights-{tokens}-{label}",
                "TPF302",
                "need_weights=True against False, forward and backward",
                condition,
                f"MultiheadAttention(512, 8) on {batch} × {tokens} × 512",
                lambda b=batch, t=tokens, d=dtype: (  # type: ignore[misc]
                    training(Attention(True), tensor(b, t, 512, dtype=torch.float32), d),
                    training(Attention(False), tensor(b, t, 512, dtype=torch.float32), d),
                ),
            )
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


def convolutional_step(width: int, dtype: torch.dtype | None, last: bool) -> Run:
    """A training step of a stack of convolutions on 32 images of 56 × 56."""
    layout = torch.channels_last if last else torch.contiguous_format
    model = stack(lambda bias: nn.Conv2d(width, width, 3, padding=1, bias=bias), lambda: nn.BatchNorm2d(width), False)
    for parameter in model.parameters():
        if parameter.dim() == 4:
            parameter.data = parameter.data.contiguous(memory_format=layout)
    return whole_step(model, tensor(32, width, 56, 56, dtype=torch.float32).contiguous(memory_format=layout), dtype)


def steps() -> Iterator[Pair]:
    """Whole training steps of stacks whose width no tile divides."""
    for width, padded in ((60, 64), (63, 64), (100, 104), (254, 256)):
        for label, dtype in (("float32", None), ("bfloat16", torch.bfloat16)):
            for last in (False, True):
                yield Pair(
                    f"conv-step-{width}-{label}{'-channels-last' if last else ''}",
                    "TPF351",
                    f"a training step with {width} channels against {padded}",
                    "float32 with TF32 in cuDNN" if dtype is None else "bfloat16 autocast",
                    f"10 × (Conv2d(C, C, 3), BatchNorm2d, ReLU) on 32 × C × 56 × 56{', channels_last' if last else ''}",
                    lambda w=width, p=padded, d=dtype, cl=last: (  # type: ignore[misc]
                        convolutional_step(w, d, cl),
                        convolutional_step(p, d, cl),
                    ),
                    scope="step",
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


def eight_bits() -> Iterator[Pair]:
    """INT8 and FP8 products."""

    def integers(inner: int, columns: int) -> Run:
        left = torch.randint(-9, 9, (4096, inner), device=OPTIONS.device, dtype=torch.int8)
        right = torch.randint(-9, 9, (columns, inner), device=OPTIONS.device, dtype=torch.int8).t()
        return lambda: torch._int_mm(left, right)

    def floats(inner: int, columns: int) -> Run:
        left = tensor(4096, inner, dtype=torch.float8_e4m3fn)
        right = tensor(columns, inner, dtype=torch.float8_e4m3fn).t()
        one = torch.ones((), device=OPTIONS.device)
        return lambda: torch._scaled_mm(left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

    for inner in (1040, 1056, 1072, 1088, 1120):
        yield Pair(
            f"matmul-{inner}-1024-int8",
            "TPF374",
            f"a matmul of {inner} × 1024 against 1152 × 1024",
            "int8",
            "4096 rows",
            lambda i=inner: (integers(i, 1024), integers(1152, 1024)),  # type: ignore[misc]
        )
    for inner, columns, better, padded in (
        (1024, 1000, 1024, 1024),
        (1024, 1008, 1024, 1024),
        (1024, 1016, 1024, 1024),
        (1000, 1024, 1024, 1024),
        (1008, 1024, 1024, 1024),
        (1016, 1024, 1024, 1024),
    ):
        for label, make in (("int8", integers), ("float8", floats)):
            yield Pair(
                f"matmul-{inner}-{columns}-{label}",
                "TPF374",
                f"a matmul of {inner} × {columns} against {better} × {padded}",
                label,
                "4096 rows",
                lambda i=inner, c=columns, b=better, p=padded, m=make: (m(i, c), m(b, p)),  # type: ignore[misc]
            )


SIZES = (matmuls, trained_linears, convolutions, vocabularies, heads, steps, eight_bits)

if __name__ == "__main__":
    main("layers", __doc__, (*SIZES, attention_weights, biases))
