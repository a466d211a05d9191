"""What patterns around the step cost: optimizers, gradients, accumulation, loaders, growing tensors, checkpoints.

Prints the rows of `perflint/rules/worth.toml`.
Usage: python benchmarks/rules/loop.py [--device cpu --quick] [PREFIX …]  (only the rows whose name starts so)
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import numpy as np
import torch
from programs import GPT, gpt_step, ids, policy_step, train
from timing import OPTIONS, Pair, Run, main, tensor
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

GPT_SHAPE = "GPT-2 of 124 M parameters, batch 8 of 1024 tokens"
POLICY_SHAPE = "8 × Linear(512, 512) with GELU, batch 256, AdamW fused"
HALF = "bfloat16 autocast"
Settings = dict[str, bool]
After = Callable[[GPT, torch.optim.Optimizer, torch.Tensor], object]
Parameters = list[nn.Parameter]
Split = list[list[dict[str, list[nn.Parameter]]]]
"""The groups of each optimizer."""
Average = Callable[[nn.Module, nn.Module], object]


def nothing(model: GPT, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """The good form of what is done at the end of a step."""


def training(
    settings: Settings,
    to_none: bool = True,
    after: After = nothing,
    detect: bool = False,
    split: Callable[[Parameters], Split] = lambda given: [[{"params": given}]],
) -> Run:
    """A training step with AdamW as `settings` say; `after` runs between its step and the end."""
    model, batch = GPT().to(OPTIONS.device), ids(8, 1024)
    parts = [torch.optim.AdamW(part, lr=1e-5, **settings) for part in split([*model.parameters()])]

    def step() -> None:
        with torch.autograd.set_detect_anomaly(detect):
            with torch.autocast(OPTIONS.device, torch.bfloat16):
                loss = model(batch)
            loss.backward()
        for part in parts:
            part.step()
        after(model, parts[0], loss)
        for part in parts:
            part.zero_grad(set_to_none=to_none)

    return step


def in_step(rule: str, name: str, words: str, make: Callable[[], tuple[Run, Run]]) -> Pair:
    """A pair of whole training steps."""
    return Pair(f"{name}-step-gpt", rule, words, HALF, GPT_SHAPE, make, "step")


def optimizers() -> Iterator[Pair]:
    """Forms of AdamW, and of what is done with its gradients, in whole steps."""
    fused: Settings = {"fused": True}
    plain: Settings = {}

    def groups(given: Parameters) -> Split:
        return [[{"params": [each]} for each in given]]

    def parts(given: Parameters) -> Split:
        return [[{"params": [each]}] for each in given]

    words = "AdamW(foreach=False) against fused=True"
    yield in_step("TPF601", "adamw-for-loop", words, lambda: (training({"foreach": False}), training(fused)))
    words = "AdamW(foreach=False) against the default"
    yield in_step("TPF601", "adamw-for-loop-default", words, lambda: (training({"foreach": False}), training(plain)))
    words = "AdamW(fused=True) with a group for each parameter against one group"
    yield in_step(
        "TPF609",
        "group-per-parameter",
        words,
        lambda: (training(fused, split=groups), training(fused)),
    )
    words = "an AdamW(fused=True) for each parameter against one"
    yield in_step(
        "TPF609",
        "optimizer-per-parameter",
        words,
        lambda: (training(fused, split=parts), training(fused)),
    )
    words = "zero_grad(set_to_none=False) against the default"
    yield in_step("TPF602", "zero-grad-memset", words, lambda: (training(fused, to_none=False), training(fused)))
    if OPTIONS.device == "cuda":
        words = "AdamW(capturable=True) against the default"
        yield in_step("TPF607", "adamw-capturable", words, lambda: (training({"capturable": True}), training(plain)))
    words = "AdamW's step counters on the GPU against the CPU"
    yield in_step(
        "TPF608", "adamw-step-on-device", words, lambda: (training(plain, after=counters_to_device), training(plain))
    )
    words = "detect_anomaly against none"
    yield in_step("TPF606", "detect-anomaly", words, lambda: (training(fused, detect=True), training(fused)))
    yield in_step(
        "TPF125",
        "manual-gradient-norm",
        "a gradient norm by .item() per parameter against get_total_norm",
        lambda: (training(fused, after=norm_by_item), training(fused, after=norm_at_once)),
    )
    words = "a histogram of every gradient each step against none"
    yield in_step("TPF605", "histograms", words, lambda: (training(fused, after=histograms), training(fused)))
    words = "torch.save of all parameters each step, into memory, against none"
    yield in_step("TPF963", "checkpoint", words, lambda: (training(fused, after=save), training(fused)))
    yield in_step(
        "TPF504",
        "model-moved",
        "model.to(device) each step, of a model that is there, against none",
        lambda: (training(fused, after=lambda model, *_: model.to(OPTIONS.device)), training(fused)),
    )


def counters_to_device(model: GPT, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """What a resumed run has: step counters on the device. They stay there after the first step."""
    for state in optimizer.state.values():
        if state["step"].device.type != OPTIONS.device:
            state["step"] = state["step"].to(OPTIONS.device)


def norm_by_item(model: GPT, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> float:
    """As it is written everywhere."""
    total = 0.0
    for p in model.parameters():
        if p.grad is not None:
            total += p.grad.norm(2).item() ** 2
    return total**0.5


def norm_at_once(model: GPT, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> torch.Tensor:
    """Of all gradients in a few kernels."""
    return nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])


def histograms(model: GPT, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """As summary writers compute them: with NumPy, on the host."""
    for p in model.parameters():
        if p.grad is not None:
            np.histogram(p.grad.detach().float().cpu().numpy(), bins=64)


def save(model: GPT, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """A checkpoint that meets no disk."""
    torch.save(model.state_dict(), io.BytesIO())


def averages() -> Iterator[Pair]:
    """A moving average of the weights: one by one, in place and out of place, and at once."""

    def step(average_of: Average) -> Run:
        model, average, batch = GPT().to(OPTIONS.device), GPT().to(OPTIONS.device), ids(8, 1024)
        return gpt_step(model, batch, end=lambda loss: average_of(average, model))

    words = "a moving average parameter by parameter against torch._foreach_lerp_"
    yield in_step("TPF603", "average-one-by-one", words, lambda: (step(in_place), step(at_once)))
    words = "an average computed out of place, parameter by parameter, against torch._foreach_lerp_"
    yield in_step("TPF603", "average-out-of-place", words, lambda: (step(out_of_place), step(at_once)))

    def policy(average_of: Average) -> Run:
        width = 32 if OPTIONS.quick else 512
        model, target = (
            nn.Sequential(*(nn.Linear(width, width) for _ in range(8)), nn.Linear(width, 16)).to(OPTIONS.device)
            for _ in range(2)
        )
        return policy_step(lambda logits: average_of(target, model))

    for name, form, words in (("one-by-one", in_place, ""), ("out-of-place", out_of_place, " out of place")):
        yield Pair(
            f"average-{name}-policy",
            "TPF603",
            f"a target network averaged{words}, parameter by parameter, against torch._foreach_lerp_",
            "float32",
            POLICY_SHAPE,
            lambda form=form: (policy(form), policy(at_once)),
            "step",
        )


@torch.no_grad()
def in_place(average: nn.Module, model: nn.Module) -> None:
    """Two kernels for each parameter."""
    for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
        slow.mul_(0.999).add_(fast, alpha=0.001)


def out_of_place(average: nn.Module, model: nn.Module) -> None:
    """Four kernels for each parameter."""
    for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
        slow.data.copy_(0.001 * fast.data + 0.999 * slow.data)


@torch.no_grad()
def at_once(average: nn.Module, model: nn.Module) -> None:
    """All parameters in a few kernels."""
    torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 0.001)


def sums() -> Iterator[Pair]:
    """Losses that are added with their graph; the sum starts anew every hundredth step."""

    def step(detached: bool) -> Run:
        model, batch = GPT().to(OPTIONS.device), ids(8, 1024)
        total, count = torch.zeros((), device=OPTIONS.device), 0

        def add(loss: torch.Tensor) -> None:
            nonlocal total, count
            total, count = total + (loss.detach() if detached else loss), count + 1
            if count % 100 == 0:
                total = torch.zeros((), device=OPTIONS.device)

        return train(model, lambda: model(batch), end=add)

    yield in_step("TPF210", "sum-with-graph", "total += loss against loss.detach()", lambda: (step(False), step(True)))


def tensors() -> Iterator[Pair]:
    """Tensors that grow, that leave the device, that are filled row by row or copied for nothing."""
    turns, rows = (8, 8) if OPTIONS.quick else (256, 64)

    def growing() -> tuple[Run, Run]:
        part = tensor(64, 1000)

        def grown() -> torch.Tensor:
            found = torch.empty(0, 1000, device=OPTIONS.device)
            for _ in range(turns):
                found = torch.cat([found, part])
            return found

        return grown, lambda: torch.cat([part for _ in range(turns)])

    yield Pair(
        "cat-growth", "TPF207", "torch.cat in each turn against one", "float32", f"{turns} parts of 64 × 1000", growing
    )

    def leaving() -> tuple[Run, Run]:
        x = tensor(64, 10000)
        return lambda: torch.from_numpy(np.sort(x.cpu().numpy())).to(OPTIONS.device), lambda: x.sort().values

    yield Pair(
        "sort-on-host", "TPF205", "np.sort on the CPU and back against torch.sort", "float32", "64 × 10000", leaving
    )

    def by_rows() -> tuple[Run, Run]:
        x = tensor(rows, 3, 224, 224)

        def looped() -> torch.Tensor:
            out = torch.empty_like(x)
            for i in range(rows):
                out[i] = x[i] / x[i].norm()
            return out

        return looped, lambda: x / x.flatten(1).norm(dim=1).view(-1, 1, 1, 1)

    yield Pair(
        "rows-in-a-loop", "TPF208", "rows in a loop against all at once", "float32", f"{rows} × 3 × 224 × 224", by_rows
    )

    def doubles() -> tuple[Run, Run]:
        single, double = tensor(2048, 2048), tensor(2048, 2048).double()
        return lambda: double @ double, lambda: single @ single

    yield Pair("matmul-float64", "TPF209", "a matmul in float64 against float32", "float64", "2048 × 2048", doubles)

    def copies() -> tuple[Run, Run]:
        x, y = tensor(64, 3, 224, 224), tensor(64, 3, 224, 224)
        return lambda: (x + y).clone(), lambda: x + y

    yield Pair("copy-of-sum", "TPF211", "(x + y).clone() against x + y", "float32", "64 × 3 × 224 × 224", copies)

    def types() -> tuple[Run, Run]:
        y = torch.randint(0, 10, (64, 1024), device=OPTIONS.device, dtype=torch.int32)
        return lambda: y.type(torch.LongTensor).to(OPTIONS.device), lambda: y.long()

    yield Pair("legacy-type", "TPF206", ".type(torch.LongTensor) and back against .long()", "int64", "64 × 1024", types)


def loaders() -> Iterator[Pair]:
    """Short epochs with workers that stay, that start anew, and with a loader that is made anew."""
    count = 64 if OPTIONS.quick else 2048

    def epoch(stays: bool, anew: bool) -> Run:
        data = TensorDataset(torch.randn(count, 3, 32, 32))
        kept = DataLoader(data, 64, num_workers=4, persistent_workers=stays)

        def run() -> None:
            for (x,) in DataLoader(data, 64, num_workers=4) if anew else kept:
                x.to(OPTIONS.device)

        return run

    shape = f"{count // 64} batches of 64 × 3 × 32 × 32, four workers"
    words = "an epoch with workers that start anew against persistent_workers"
    yield Pair(
        "workers-start-anew", "TPF403", words, "float32", shape, lambda: (epoch(False, False), epoch(True, False))
    )
    words = "an epoch with a loader that is made anew against persistent_workers"
    yield Pair("loader-made-anew", "TPF404", words, "float32", shape, lambda: (epoch(False, True), epoch(True, False)))


if __name__ == "__main__":
    main("loop", __doc__, (optimizers, averages, sums, tensors, loaders))
