"""What other patterns cost in whole steps: copies, scalers, evaluation, biases of a ResNet, INT8.

Prints the rows of `perflint/rules/worth.toml`.
Usage: python benchmarks/rules/steps.py [--device cpu --quick] [PREFIX …]  (only the rows whose name starts so)
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator

import torch
from programs import GPT, HOST_WORK_MS, gpt_step, host_work, ids, images, policy_step, resnet50, resnet_step
from timing import OPTIONS, Pair, Run, main, tensor
from torch import nn
from torch.nn import functional as F

GPT_SHAPE = "GPT-2 of 124 M parameters, batch 8 of 1024 tokens"
RESNET = "ResNet-50, batch 64 of 3 × 224 × 224"
HALF = "bfloat16 autocast"
Fetch = Callable[[], torch.Tensor]


def pinned(host: torch.Tensor) -> torch.Tensor:
    """A copy in pinned memory, where there is a device to pin for."""
    return host.pin_memory() if OPTIONS.device == "cuda" else host


def copies() -> Iterator[Pair]:
    """Ways of copying 38 MB of images, alone and in training."""

    def ways(host: torch.Tensor) -> dict[str, Fetch]:
        device, fast, buffer = OPTIONS.device, pinned(host), pinned(host)
        array = host.numpy()

        def through_buffer() -> torch.Tensor:
            buffer.copy_(torch.from_numpy(array))
            return buffer.to(device, non_blocking=True)

        return {
            "pageable": lambda: host.to(device),
            "pinned": lambda: fast.to(device),
            "pinned non_blocking": lambda: fast.to(device, non_blocking=True),
            "pageable non_blocking": lambda: torch.from_numpy(array).to(device, non_blocking=True),
            "through a pinned buffer": through_buffer,
            "pin_memory().to(…)": lambda: pinned(host).to(device, non_blocking=True),
        }

    for rule, name, bad, good in (
        ("TPF201", "pageable", "pageable", "pinned non_blocking"),
        ("TPF201", "pinned-blocking", "pinned", "pinned non_blocking"),
        ("TPF202", "pageable-nonblocking", "pageable non_blocking", "through a pinned buffer"),
        ("TPF202", "pageable-nonblocking-pinned", "pageable non_blocking", "pinned non_blocking"),
        ("TPF203", "inline-pin", "pin_memory().to(…)", "pageable"),
    ):

        def alone(bad: str = bad, good: str = good) -> tuple[Run, Run]:
            found = ways(images(64, "cpu"))
            return found[bad], found[good]

        def training(ms: float, bad: str = bad, good: str = good) -> tuple[Run, Run]:
            found, model = ways(images(64, "cpu")), resnet50()
            left, right = (resnet_step(model, found[way], torch.bfloat16, True, ms) for way in (bad, good))
            return left, right

        words = f"images copied {bad} against {good}"
        yield Pair(f"copy-{name}", rule, words, "float32", "64 × 3 × 224 × 224, 38 MB", alone)
        yield Pair(
            f"copy-{name}-resnet50", rule, words, HALF, RESNET + ", channels_last", lambda t=training: t(0), "step"
        )
        pattern = f"{words}, {HOST_WORK_MS:g} ms of CPU work before it"
        where = RESNET + ", channels_last"
        yield Pair(
            f"copy-{name}-resnet50-host-work", rule, pattern, HALF, where, lambda t=training: t(HOST_WORK_MS), "step"
        )


def pins() -> Iterator[Pair]:
    """Pinning for one copy, by size."""
    for name, shape in (("64-kb", (64, 256)), ("4-mb", (1024, 1024))):

        def alone(shape: tuple[int, int] = shape) -> tuple[Run, Run]:
            host = torch.randn(*shape)
            device = OPTIONS.device
            return lambda: pinned(host).to(device, non_blocking=True), lambda: host.to(device)

        words = "pin_memory() for one copy against a pageable copy"
        yield Pair(f"copy-inline-pin-{name}", "TPF203", words, "float32", " × ".join(map(str, shape)), alone)

        def new_sizes(shape: tuple[int, int] = shape) -> tuple[Run, Run]:
            hosts = [torch.randn(shape[0] + 8 * each, shape[1]) for each in range(400)]
            given = iter(hosts * 1000)
            device = OPTIONS.device
            return (
                lambda: pinned(next(given)).to(device, non_blocking=True),
                lambda: next(given).to(device),
            )

        words = "pin_memory() for one copy against a pageable copy, another size each time"
        shape_words = f"{shape[0]} to {shape[0] + 3192} × {shape[1]}"
        yield Pair(f"copy-inline-pin-{name}-sizes", "TPF203", words, "float32", shape_words, new_sizes)


def scalers() -> Iterator[Pair]:
    """What a GradScaler makes the host wait for."""

    def step(fused: bool, read: bool, ms: float) -> Run:
        model, batch = GPT().to(OPTIONS.device), ids(8, 1024)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=fused)
        scaler = torch.amp.GradScaler(OPTIONS.device)

        def run() -> None:
            with torch.autocast(OPTIONS.device, torch.float16):
                loss = model(batch)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            if read:
                scaler.get_scale()
            if ms:
                host_work(ms)

        return run

    for ms in (0, HOST_WORK_MS):
        behind = f", {ms:g} ms of CPU work after it" if ms else ""
        end = "-host-work" if ms else ""
        yield Pair(
            f"gradscaler-step-gpt{end}",
            "TPF124",
            f"scaler.step of AdamW against one with fused=True{behind}",
            "float16 autocast",
            GPT_SHAPE,
            lambda m=ms: (step(False, False, m), step(True, False, m)),
            "step",
        )
        yield Pair(
            f"gradscaler-get-scale-gpt{end}",
            "TPF124",
            f"scaler.get_scale() at the end of each step{behind}",
            "float16 autocast",
            GPT_SHAPE,
            lambda m=ms: (step(True, True, m), step(True, False, m)),
            "step",
        )


def collections() -> Iterator[Pair]:
    """Caches emptied and garbage collected each step."""
    for name, words, act in (
        ("gc-collect", "gc.collect() each step", gc.collect),
        ("empty-cache", "torch.cuda.empty_cache() each step", torch.cuda.empty_cache),
    ):

        def in_gpt(act: Callable[[], object] = act) -> tuple[Run, Run]:
            model, batch = GPT().to(OPTIONS.device), ids(8, 1024)
            return gpt_step(model, batch, end=lambda _: act()), gpt_step(model, batch)

        def in_policy(act: Callable[[], object] = act) -> tuple[Run, Run]:
            return policy_step(lambda _: act()), policy_step(None)

        yield Pair(f"{name}-gpt", "TPF123", words, HALF, GPT_SHAPE + ", AdamW fused", in_gpt, "step")
        yield Pair(
            f"{name}-policy", "TPF123", words, "float32", "8 × Linear(512, 512) with GELU, batch 256", in_policy, "step"
        )


def biases() -> Iterator[Pair]:
    """A bias in each convolution of a ResNet-50."""
    for dtype, last, label in (
        (None, False, "float32"),
        (torch.bfloat16, False, "bfloat16"),
        (torch.bfloat16, True, "bfloat16-channels-last"),
    ):

        def pair(dtype: torch.dtype | None = dtype, last: bool = last) -> tuple[Run, Run]:
            batch = images(64)
            left, right = (resnet_step(resnet50(bias), lambda: batch, dtype, last) for bias in (True, False))
            return left, right

        yield Pair(
            f"bias-before-norm-resnet50-{label}",
            "TPF301",
            "convolution biases before BatchNorm, training",
            "float32" if dtype is None else HALF,
            RESNET + (", channels_last" if last else ""),
            pair,
            "step",
        )


def eight_bits() -> Iterator[Pair]:
    """Steps of inference through eight INT8 layers."""

    def network(width: int) -> Run:
        rows = 64 if OPTIONS.quick else 16384
        weights = [torch.randint(-9, 9, (1024, width), device=OPTIONS.device, dtype=torch.int8).t() for _ in range(8)]
        back = [torch.randint(-9, 9, (width, 1024), device=OPTIONS.device, dtype=torch.int8).t() for _ in range(8)]
        batch = tensor(rows, width, dtype=torch.bfloat16)

        def step() -> None:
            x = batch
            for down, up in zip(weights, back, strict=True):
                for weight in (down, up):
                    whole = (x * 8).clamp(-127, 127).to(torch.int8)
                    x = F.relu((torch._int_mm(whole, weight) * 1e-3).to(torch.bfloat16))

        return step

    for width, better in ((1000, 1024), (1008, 1024), (2008, 2016)):
        yield Pair(
            f"int8-step-{width}",
            "TPF374",
            f"a forward pass of INT8 layers with {width} inputs against {better}",
            "int8",
            "8 × (Linear(n, 1024), Linear(1024, n)) with quantisation and ReLU between, 16384 rows",
            lambda w=width, b=better: (network(w), network(b)),
            "step",
        )


def evaluations() -> Iterator[Pair]:
    """Evaluation with autograd on, under no_grad, and in training mode."""

    def forward(model: nn.Module, batch: torch.Tensor, context: Callable[[], object]) -> Run:
        def run() -> None:
            with context():  # type: ignore[attr-defined]
                model(batch)

        return run

    def contexts(make: Callable[[], nn.Module], batch: Callable[[], torch.Tensor], bad: object) -> tuple[Run, Run]:
        model, given = make().eval(), batch()
        return forward(model, given, bad), forward(model, given, torch.inference_mode)  # type: ignore[arg-type]

    def modes(make: Callable[[], nn.Module], batch: Callable[[], torch.Tensor]) -> tuple[Run, Run]:
        given = batch()
        left, right = (forward(make().train(mode), given, torch.inference_mode) for mode in (True, False))
        return left, right

    def gpt() -> nn.Module:
        return GPT().to(OPTIONS.device, torch.bfloat16)

    def encoder() -> nn.Module:
        layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
        return nn.TransformerEncoder(layer, 2 if OPTIONS.quick else 6).to(OPTIONS.device)

    programs: list[tuple[str, str, str, Callable[[], nn.Module], Callable[[], torch.Tensor]]] = [
        ("gpt-1", "bfloat16", "GPT-2 of 124 M parameters, 1 sequence of 128 tokens", gpt, lambda: ids(1, 128)),
        ("gpt-8", "bfloat16", "GPT-2 of 124 M parameters, 8 sequences of 1024 tokens", gpt, lambda: ids(8, 1024)),
        ("resnet50-1", "float32", "ResNet-50, batch 1 of 3 × 224 × 224", resnet50, lambda: images(1)),
        ("resnet50-64", "float32", RESNET, resnet50, lambda: images(64)),
    ]
    for name, dtype, shape, make, batch in programs:
        yield Pair(
            f"eval-with-grad-{name}",
            "TPF501",
            "evaluation with autograd on against inference_mode",
            dtype,
            shape,
            lambda m=make, b=batch: contexts(m, b, torch.enable_grad),  # type: ignore[misc]
            "step",
        )
        yield Pair(
            f"no-grad-{name}",
            "TPF502",
            "evaluation under no_grad against inference_mode",
            dtype,
            shape,
            lambda m=make, b=batch: contexts(m, b, torch.no_grad),  # type: ignore[misc]
            "step",
        )
    encoded: Callable[[], torch.Tensor] = lambda: tensor(8, 128, 512)  # noqa: E731
    for name, dtype, shape, make, batch in (
        *programs[2:],
        ("encoder", "float32", "TransformerEncoder, 6 layers of width 512, 8 × 128 tokens", encoder, encoded),
    ):
        words = "evaluation in training mode against evaluation mode"
        yield Pair(f"train-mode-{name}", "TPF503", words, dtype, shape, lambda m=make, b=batch: modes(m, b), "step")


def deprecated() -> Iterator[Pair]:
    """The old and the new name of autocast."""

    def old() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.cuda.amp.autocast(enabled=False):
                pass

    def new() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.amp.autocast("cuda", enabled=False):
                pass

    words = "torch.cuda.amp.autocast against torch.amp.autocast"
    where = "entering and leaving the context"
    yield Pair("deprecated-autocast", "TPF902", words, "float32", where, lambda: (old, new))


if __name__ == "__main__":
    main("programs", __doc__, (copies, pins, scalers, collections, biases, eight_bits, evaluations, deprecated))
