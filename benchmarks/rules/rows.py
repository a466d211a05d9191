"""What loops over the rows of a tensor cost whole steps: rows of a batch, classes of a loss, rows of a mask.

Prints the rows of `perflint/rules/worth.toml`.
Usage: python benchmarks/rules/rows.py [--device cpu --quick] [PREFIX …]  (only the rows whose name starts so)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import torch
from programs import GPT, gpt_step, ids, images, policy_step, resnet50, resnet_step
from timing import OPTIONS, Pair, Run, main
from torch import nn
from torch.nn import functional as F

HALF = "bfloat16 autocast"
GPT_SHAPE = "GPT-2 of 124 M parameters, batch 8 of 1024 tokens, AdamW fused"


def batches() -> Iterator[Pair]:
    """Images that are normalised one by one, and the rows of a small network's output."""

    def by_image(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = (x[i] - x[i].mean()) / x[i].std()
        return out

    def at_once(x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean((1, 2, 3), keepdim=True)) / x.std((1, 2, 3), keepdim=True)

    def training(normalise: Callable[[torch.Tensor], torch.Tensor]) -> Run:
        batch = images(64)
        return resnet_step(resnet50(), lambda: normalise(batch), torch.bfloat16, True)

    yield Pair(
        "rows-in-a-loop-resnet50",
        "TPF208",
        "images normalised one by one against all at once",
        HALF,
        "ResNet-50, batch 64 of 3 × 224 × 224, channels_last",
        lambda: (training(by_image), training(at_once)),
        "step",
    )

    def by_row(logits: torch.Tensor) -> torch.Tensor:
        return torch.stack([logits[i].softmax(0).max() for i in range(len(logits))])

    yield Pair(
        "rows-in-a-loop-policy",
        "TPF208",
        "the surest action of each row one by one against all at once",
        "float32",
        "8 × Linear(512, 512) with GELU, batch 256",
        lambda: (policy_step(by_row), policy_step(lambda logits: logits.softmax(1).amax(1))),
        "step",
    )


def classes() -> Iterator[Pair]:
    """The overlap of each class in a loss, with its backward."""
    count, side = 21, 8 if OPTIONS.quick else 128

    def by_class(probabilities: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        losses = []
        for c in range(count):
            shared = (probabilities[:, c] * wanted[:, c]).sum((1, 2))
            whole = probabilities[:, c].sum((1, 2)) + wanted[:, c].sum((1, 2))
            losses.append(1 - 2 * shared / (whole + 1e-6))
        return torch.stack(losses).mean()

    def at_once(probabilities: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        shared = (probabilities * wanted).sum((2, 3))
        whole = probabilities.sum((2, 3)) + wanted.sum((2, 3))
        return (1 - 2 * shared / (whole + 1e-6)).mean()

    def training(loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Run:
        features = list(resnet50().children())[:-3]
        model = nn.Sequential(*features, nn.Conv2d(2048, count, 1)).to(OPTIONS.device)
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
        batch = images(16).contiguous(memory_format=torch.channels_last)
        labels = torch.randint(0, count, (len(batch), side, side), device=OPTIONS.device)

        def step() -> None:
            with torch.autocast(OPTIONS.device, torch.bfloat16):
                logits = model(batch)
            logits = F.interpolate(logits.float(), (side, side), mode="bilinear")
            wanted = F.one_hot(labels, count).movedim(-1, 1).float()
            optimizer.zero_grad()
            loss(logits.softmax(1), wanted).backward()
            optimizer.step()

        return step

    yield Pair(
        "classes-in-a-loop-segmentation",
        "TPF208",
        "the Dice loss of 21 classes one by one against all at once",
        HALF,
        "ResNet-50 with a head for 21 classes, batch 16 of 3 × 224 × 224, masks of 128 × 128",
        lambda: (training(by_class), training(at_once)),
        "step",
    )


def masks() -> Iterator[Pair]:
    """A mask of causal blocks that is filled row by row in each step."""
    length, block = (32, 4) if OPTIONS.quick else (1024, 16)

    def by_row(loss: torch.Tensor) -> torch.Tensor:
        mask = torch.full((length, length), float("-inf"), device=loss.device)
        for i in range(length):
            mask[i, : (i // block + 1) * block] = 0
        return mask

    def at_once(loss: torch.Tensor) -> torch.Tensor:
        last = torch.arange(length, device=loss.device) // block
        return torch.zeros(length, length, device=loss.device).masked_fill_(last[None] > last[:, None], float("-inf"))

    def training(fill: Callable[[torch.Tensor], torch.Tensor]) -> Run:
        return gpt_step(GPT().to(OPTIONS.device), ids(8, 1024), end=fill)

    yield Pair(
        "mask-row-by-row-gpt",
        "TPF208",
        "a mask of 1024 rows filled one by one against a comparison",
        HALF,
        GPT_SHAPE,
        lambda: (training(by_row), training(at_once)),
        "step",
    )


def numbers() -> Iterator[Pair]:
    """Tokens of a loader, which come one by one."""
    count = 65 if OPTIONS.quick else 8 * 1024 + 1

    def one_by_one(tokens: deque[int]) -> torch.Tensor:
        scratch = torch.empty(count, dtype=torch.int64)
        for i in range(count):
            scratch[i] = tokens.popleft()
        return scratch

    def at_once(tokens: deque[int]) -> torch.Tensor:
        return torch.tensor([tokens.popleft() for _ in range(count)])

    def training(gather: Callable[[deque[int]], torch.Tensor]) -> Run:
        def fetch(_: torch.Tensor) -> torch.Tensor:
            return gather(deque(range(count))).to(OPTIONS.device)

        return gpt_step(GPT().to(OPTIONS.device), ids(8, 1024), end=fetch)

    yield Pair(
        "numbers-one-by-one-gpt",
        "TPF208",
        "the 8193 tokens of a batch stored one by one against a tensor of their list",
        HALF,
        GPT_SHAPE,
        lambda: (training(one_by_one), training(at_once)),
        "step",
    )


if __name__ == "__main__":
    main("rows", __doc__, (batches, classes, masks, numbers))
