"""What habits around models cost: attention by hand, cells in loops, retained graphs, switches of cuDNN.

Prints the rows of `perflint/rules/worth.toml`.
Usage: python benchmarks/rules/models.py [--device cpu --quick] [PREFIX …]  (only the rows whose name starts so)
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection

import torch
from layers import whole_step
from programs import GPT, Attend, Block, causal, gpt_step, ids, images, policy_step, resnet50, resnet_step, train
from timing import OPTIONS, Options, Pair, Run, main, tensor
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

GPT_SHAPE = "GPT-2 of 124 M parameters, batch 8 of 1024 tokens"
RESNET = "ResNet-50, batch 64 of 3 × 224 × 224"
HALF = "bfloat16 autocast"
FORMATS: tuple[tuple[str, str, torch.dtype | None], ...] = (
    ("float32", "float32", None),
    ("bfloat16", HALF, torch.bfloat16),
)


def layers(attend: Attend) -> nn.Sequential:
    """Six transformer layers of width 512."""
    return nn.Sequential(*[Block(512, 8, attend) for _ in range(6)])


def by_hand(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """As it is written everywhere."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return scores.softmax(dim=-1) @ value


def attention() -> Iterator[Pair]:
    """Attention from matmuls and a softmax."""
    for label, condition, dtype in FORMATS:
        for batch, tokens in ((16, 256), (8, 1024)):

            def steps(left: Attend, b: int = batch, t: int = tokens, d: torch.dtype | None = dtype) -> Run:
                if OPTIONS.quick:
                    b, t = 1, 32
                return whole_step(layers(left), tensor(b, t, 512), d)

            yield Pair(
                f"attention-by-hand-{tokens}-step-{label}",
                "TPF303",
                "attention from matmuls and a softmax against scaled_dot_product_attention",
                condition,
                f"6 transformer layers of width 512, {batch} × {tokens} tokens, AdamW fused",
                lambda s=steps: (s(by_hand), s(F.scaled_dot_product_attention)),  # type: ignore[misc]
                "step",
            )


class Unrolled(nn.Module):
    """A recurrent layer from a cell, step by step."""

    def __init__(self, cell: nn.LSTMCell | nn.GRUCell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(tokens, batch, width) to the same."""
        state = None
        found = []
        for row in x:
            state = self.cell(row, state)
            found.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(found)


def formats() -> Iterator[Pair]:
    """Attention that is computed in float32, and a program in float64."""

    def exact(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        mixed = F.scaled_dot_product_attention(query.float(), key.float(), value.float(), is_causal=True)
        return mixed.to(query.dtype)

    def steps(attend: Attend) -> Run:
        shape = (1, 32) if OPTIONS.quick else (8, 1024)
        # Autocast would cast the operands to bfloat16 again.
        return whole_step(layers(attend).to(torch.bfloat16), tensor(*shape, 512, dtype=torch.bfloat16), None)

    words = "query, key and value in float32 for scaled_dot_product_attention against bfloat16"
    where = "6 transformer layers of width 512, 8 × 1024 tokens, AdamW fused"
    yield Pair(
        "attention-in-float32-step", "TPF314", words, "bfloat16", where, lambda: (steps(exact), steps(causal)), "step"
    )

    def training(dtype: torch.dtype) -> Run:
        model, batch = GPT().to(OPTIONS.device, dtype), ids(8, 1024)
        return train(model, lambda: model(batch), None)

    yield Pair(
        "float64-step-gpt",
        "TPF358",
        "a training step in float64 against float32",
        "float64",
        f"{GPT_SHAPE}, AdamW fused",
        lambda: (training(torch.float64), training(torch.float32)),
        "step",
    )


def cells() -> Iterator[Pair]:
    """Cells in a loop."""
    tokens, width = (8, 32) if OPTIONS.quick else (128, 512)
    for label, condition, dtype in FORMATS:
        for name, cell, layer in (("lstm", nn.LSTMCell, nn.LSTM), ("gru", nn.GRUCell, nn.GRU)):
            yield Pair(
                f"{name}-cell-in-loop-{label}",
                "TPF304",
                f"{name.upper()}Cell in a loop against {name.upper()}, a training step",
                condition,
                f"width {width}, 64 sequences of {tokens}, AdamW fused",
                lambda c=cell, m=layer, d=dtype: (  # type: ignore[misc]
                    whole_step(Unrolled(c(width, width)), tensor(tokens, 64, width), d),
                    whole_step(m(width, width), tensor(tokens, 64, width), d),
                ),
                "step",
            )


def retained() -> Iterator[Pair]:
    """Graphs that are kept, or recorded, for a second backward pass that never comes."""

    def step(**asked: bool) -> Run:
        model, batch = GPT().to(OPTIONS.device), ids(8, 1024)
        return train(model, lambda: model(batch), backward=lambda loss: loss.backward(**asked))

    def small(**asked: bool) -> Run:
        model = nn.Sequential(*[each for _ in range(8) for each in (nn.Linear(512, 512), nn.Tanh())])
        model, batch = model.to(OPTIONS.device), tensor(256, 512)

        def run() -> None:
            loss = model(batch).square().mean()
            # What `create_graph` records is dropped here, as a program that resets its gradients does.
            model.zero_grad()
            loss.backward(**asked)
            model.zero_grad()

        return run

    words = "backward(retain_graph=True) against none"
    yield Pair(
        "retain-graph-step-gpt", "TPF305", words, HALF, GPT_SHAPE, lambda: (step(retain_graph=True), step()), "step"
    )
    words = "backward(create_graph=True) against none"
    where = "8 × Linear(512, 512) with tanh, batch 256"
    yield Pair(
        "create-graph-step-mlp", "TPF305", words, "float32", where, lambda: (small(create_graph=True), small()), "step"
    )


def losses() -> Iterator[Pair]:
    """Losses from a probability and its logarithm."""
    rows, classes = (64, 100) if OPTIONS.quick else (8192, 50304)

    def trained(loss: Callable[[torch.Tensor], torch.Tensor], count: int) -> Run:
        logits = tensor(rows, count).requires_grad_()
        return lambda: torch.autograd.grad(loss(logits), logits)

    target = torch.randint(0, classes, (rows,), device=OPTIONS.device)
    bits = torch.randint(0, 2, (rows, 1000), device=OPTIONS.device).float()
    yield Pair(
        "log-of-softmax",
        "TPF306",
        "softmax, log and nll_loss against cross_entropy, forward and backward",
        "float32",
        f"{rows} × {classes}",
        lambda: (
            trained(lambda x: F.nll_loss(torch.log(torch.softmax(x, -1)), target), classes),
            trained(lambda x: F.cross_entropy(x, target), classes),
        ),
    )
    yield Pair(
        "sigmoid-then-bce",
        "TPF306",
        "sigmoid and binary_cross_entropy against the loss with logits, forward and backward",
        "float32",
        f"{rows} × 1000",
        lambda: (
            trained(lambda x: F.binary_cross_entropy(torch.sigmoid(x), bits), 1000),
            trained(lambda x: F.binary_cross_entropy_with_logits(x, bits), 1000),
        ),
    )

    def step(by_log: bool) -> Run:
        model, tokens = GPT().to(OPTIONS.device), ids(8, 1024)

        def loss() -> torch.Tensor:
            logits = model.logits(tokens).flatten(0, 1)
            logarithms = torch.log(torch.softmax(logits, -1)) if by_log else torch.log_softmax(logits, -1)
            return F.nll_loss(logarithms, tokens.flatten())

        return train(model, loss)

    words = "log(softmax(x)) against log_softmax(x)"
    yield Pair("log-of-softmax-step-gpt", "TPF306", words, HALF, GPT_SHAPE, lambda: (step(True), step(False)), "step")


def checkpoints() -> Iterator[Pair]:
    """The two forms of activation checkpointing."""

    def step(reentrant: bool, dtype: torch.dtype | None) -> Run:
        stack = layers(F.scaled_dot_product_attention)

        class Checkpointed(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.stack = stack

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                x = x.detach().requires_grad_()
                for layer in self.stack:
                    x = checkpoint(layer, x, use_reentrant=reentrant)
                return x

        return whole_step(Checkpointed(), tensor(1 if OPTIONS.quick else 8, 64 if OPTIONS.quick else 1024, 512), dtype)

    for label, condition, dtype in FORMATS:
        yield Pair(
            f"reentrant-checkpoint-step-{label}",
            "TPF307",
            "checkpoint(use_reentrant=True) against False",
            condition,
            "6 transformer layers of width 512, 8 × 1024 tokens, AdamW fused",
            lambda d=dtype: (step(True, d), step(False, d)),  # type: ignore[misc]
            "step",
        )


def frozen() -> Iterator[Pair]:
    """A body that does not learn, with gradients and without."""

    def step(with_gradients: bool) -> Run:
        model = resnet50()
        *body, head = model
        nn.Sequential(*body).requires_grad_(with_gradients)
        optimizer = torch.optim.SGD(head.parameters(), lr=1e-3)
        batch = images(64)
        target = torch.randint(0, 1000, (len(batch),), device=OPTIONS.device)

        def run() -> None:
            with torch.autocast(OPTIONS.device, torch.bfloat16):
                loss = F.cross_entropy(model(batch), target)
            model.zero_grad()
            loss.backward()
            optimizer.step()

        return run

    words = "a frozen body that requires gradients against requires_grad_(False)"
    where = RESNET + ", only the last layer is trained"
    yield Pair(
        "frozen-body-with-gradients-step", "TPF308", words, HALF, where, lambda: (step(True), step(False)), "step"
    )


@contextlib.contextmanager
def cudnn(**flags: bool) -> Iterator[None]:
    """Switches of cuDNN, for one step."""
    with torch.backends.cudnn.flags(**{"enabled": True, "deterministic": False, "allow_tf32": True, **flags}):
        yield


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    """Deterministic algorithms, for one step; operators that have none only warn."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def switches() -> Iterator[Pair]:
    """Switches that make a program reproducible, or that look for the fastest convolution."""

    def under(setting: Callable[[], contextlib.AbstractContextManager[None]], inner: Run) -> Run:
        def run() -> None:
            with setting():
                inner()

        return run

    def step(setting: Callable[[], contextlib.AbstractContextManager[None]], dtype: torch.dtype | None) -> Run:
        batch = images(64)
        return under(setting, resnet_step(resnet50(), lambda: batch, dtype, dtype is not None))

    def gpt(setting: Callable[[], contextlib.AbstractContextManager[None]]) -> Run:
        return under(setting, gpt_step(GPT().to(OPTIONS.device), ids(8, 1024)))

    kinds: tuple[tuple[str, str, Callable[[], contextlib.AbstractContextManager[None]]], ...] = (
        ("cudnn-off", "cudnn.enabled = False", lambda: cudnn(enabled=False)),
        ("cudnn-deterministic", "cudnn.deterministic = True", lambda: cudnn(deterministic=True)),
        ("deterministic-algorithms", "use_deterministic_algorithms(True)", deterministic),
    )
    for label, condition, dtype in FORMATS:
        for name, words, setting in kinds:
            yield Pair(
                f"{name}-step-resnet50-{label}",
                "TPF358",
                f"{words} against the default",
                condition,
                RESNET + (", channels_last" if dtype is not None else ""),
                lambda s=setting, d=dtype: (step(s, d), step(cudnn, d)),  # type: ignore[misc]
                "step",
            )
        yield Pair(
            f"no-cudnn-benchmark-step-resnet50-{label}",
            "TPF358",
            "the default against cudnn.benchmark = True",
            condition,
            RESNET + (", channels_last" if dtype is not None else ""),
            lambda d=dtype: (step(cudnn, d), step(lambda: cudnn(benchmark=True), d)),  # type: ignore[misc]
            "step",
        )
    yield Pair(
        "deterministic-algorithms-step-gpt",
        "TPF358",
        "use_deterministic_algorithms(True) against the default",
        HALF,
        GPT_SHAPE,
        lambda: (gpt(deterministic), gpt(contextlib.nullcontext)),
        "step",
    )


def varying() -> Iterator[Pair]:
    """cuDNN's search for the fastest convolution with images whose size changes."""

    def epoch(benchmark: bool) -> Run:
        body = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1)).to(
            OPTIONS.device
        )
        sizes = iter(range(64, 1_000_000))

        def run() -> None:
            # A size that was there already costs nothing more.
            size = 64 + 2 * (next(sizes) % 512)
            with cudnn(benchmark=benchmark), torch.no_grad():
                body(torch.zeros(4, 3, size, size, device=OPTIONS.device))

        return run

    yield Pair(
        "cudnn-benchmark-varying-sizes",
        "TPF358",
        "cudnn.benchmark = True against the default where each batch has another size",
        "float32 with TF32 in cuDNN",
        "two convolutions of 64 channels on 4 images of 64 to 1086 pixels",
        lambda: (epoch(True), epoch(False)),
    )


def blocked() -> Iterator[Pair]:
    """CUDA_LAUNCH_BLOCKING, which must be there before CUDA is: each side is a process of its own."""
    for name, shape in (("policy", "8 × Linear(512, 512) with GELU, batch 256, AdamW fused"), ("gpt", GPT_SHAPE)):
        yield Pair(
            f"launch-blocking-step-{name}",
            "TPF358",
            "CUDA_LAUNCH_BLOCKING=1 against none, in ten steps",
            "float32" if name == "policy" else HALF,
            shape,
            lambda n=name: (elsewhere(n, True), elsewhere(n, False)),  # type: ignore[misc]
            "step",
        )


def elsewhere(name: str, blocking: bool) -> Run:
    """Ten steps of a program in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    context.Process(target=steps_of, args=(theirs, name, blocking, OPTIONS), daemon=True).start()

    def run() -> None:
        ours.send(None)
        ours.recv()

    return run


def steps_of(asked: Connection, name: str, blocking: bool, given: Options) -> None:
    """Run ten steps whenever asked; the parent's end of the pipe ends it."""
    if blocking:
        os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
    OPTIONS.device, OPTIONS.quick = given.device, given.quick
    step = policy_step(None) if name == "policy" else gpt_step(GPT().to(OPTIONS.device), ids(8, 1024))
    with contextlib.suppress(EOFError):
        while True:
            asked.recv()
            for _ in range(2 if OPTIONS.quick else 10):
                step()
            if OPTIONS.device == "cuda":
                torch.cuda.synchronize()
            asked.send(None)


FAMILIES = (attention, formats, cells, retained, losses, checkpoints, frozen, switches, varying, blocked)

if __name__ == "__main__":
    main("models", __doc__, FAMILIES)
