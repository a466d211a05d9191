"""What longer ways to the same result cost: whole sorts for a few values, all differences for distances, gradients
one by one, images read by the process that trains, convolutions in the layout that tensor cores do not read.

Prints the rows of `perflint/rules/worth.toml`.
Usage: python benchmarks/rules/detours.py [--device cpu --quick] [PREFIX …]  (only the rows whose name starts so)
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import torch
from programs import GPT, ids, images, resnet50, resnet_step, train
from timing import OPTIONS, Pair, Run, main, tensor
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

HALF = "bfloat16 autocast"
GPT_SHAPE = "GPT-2 of 124 M parameters, batch 8 of 1024 tokens, AdamW fused"
Of = Callable[[torch.Tensor], torch.Tensor]
OfTwo = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def gradients() -> Iterator[Pair]:
    """Gradients that are scaled between the backward pass and the optimizer's step."""

    def training(scale: Callable[[list[torch.Tensor]], object]) -> Run:
        model, batch = GPT().to(OPTIONS.device), ids(8, 1024)

        def backward(loss: torch.Tensor) -> None:
            loss.backward()
            scale([p.grad for p in model.parameters() if p.grad is not None])

        return train(model, lambda: model(batch), backward=backward)

    def one_by_one(grads: list[torch.Tensor]) -> None:
        for grad in grads:
            grad.mul_(0.5)

    yield Pair(
        "gradients-scaled-one-by-one-gpt",
        "TPF603",
        "gradients scaled one by one against torch._foreach_mul_",
        HALF,
        GPT_SHAPE,
        lambda: (training(one_by_one), training(lambda grads: torch._foreach_mul_(grads, 0.5))),
        "step",
    )


def sorts() -> Iterator[Pair]:
    """Whole sorts of which the first few are kept, against `topk`."""
    few = 10
    count = 1000 if OPTIONS.quick else 100_000

    def sort(scores: torch.Tensor) -> torch.Tensor:
        return scores.argsort(dim=-1, descending=True)[:, :few]

    def top(scores: torch.Tensor) -> torch.Tensor:
        return scores.topk(few, dim=-1).indices

    def alone() -> tuple[Run, Run]:
        scores = tensor(64, count)
        return lambda: sort(scores), lambda: top(scores)

    yield Pair(
        "argsort-for-ten",
        "TPF309",
        "argsort(descending=True)[:, :10] against topk(10)",
        "float32",
        f"64 × {count}",
        alone,
    )

    def retrieval(choose: Of) -> Run:
        body = [each for _ in range(8) for each in (nn.Linear(512, 512), nn.GELU())]
        encoder, corpus, queries = nn.Sequential(*body).to(OPTIONS.device), tensor(count, 512), tensor(256, 512)

        @torch.inference_mode()
        def step() -> None:
            choose(encoder(queries) @ corpus.T)

        return step

    yield Pair(
        "argsort-for-ten-retrieval",
        "TPF309",
        "all scores of a query sorted for the best ten against topk",
        "float32",
        f"8 × Linear(512, 512) with GELU, 256 queries, {count} documents",
        lambda: (retrieval(sort), retrieval(top)),
        "step",
    )

    def decoding(choose: Of) -> Run:
        model, prompt = GPT().to(OPTIONS.device).bfloat16(), ids(8, 128)

        @torch.inference_mode()
        def step() -> None:
            logits = model.head(model.features(prompt)[:, -1]).float()
            torch.multinomial(choose(logits).softmax(-1), 1)

        return step

    yield Pair(
        "sort-for-fifty-gpt-decoding",
        "TPF309",
        "logits sorted for the first 50 against topk",
        "bfloat16",
        "GPT-2 of 124 M parameters, one token for batch 8 of 128 tokens",
        lambda: (
            decoding(lambda logits: logits.sort(dim=-1, descending=True).values[:, :50]),
            decoding(lambda logits: logits.topk(50, dim=-1).values),
        ),
        "step",
    )


def distances() -> Iterator[Pair]:
    """Distances of all pairs through all differences, against `torch.cdist`."""

    def differences(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.norm(x[:, None] - y[None], dim=-1)

    count, width = (64, 8) if OPTIONS.quick else (2048, 128)

    def alone() -> tuple[Run, Run]:
        x, y = tensor(count, width), tensor(count, width)
        return lambda: differences(x, y), lambda: torch.cdist(x, y)

    yield Pair(
        "differences-for-distances",
        "TPF310",
        "norm(x[:, None] - y[None]) against torch.cdist",
        "float32",
        f"{count} and {count} points of {width}",
        alone,
    )

    def metric_learning(far: OfTwo) -> Run:
        points = 32 if OPTIONS.quick else 1024
        body = [each for _ in range(8) for each in (nn.Linear(512, 512), nn.GELU())]
        model = nn.Sequential(*body, nn.Linear(512, 128)).to(OPTIONS.device)
        states = tensor(points, 512)
        same = torch.randint(0, 64, (points,), device=OPTIONS.device)
        alike = same[:, None] == same

        def loss() -> torch.Tensor:
            x = model(states)
            apart = far(x, x)
            return torch.where(alike, apart, (1 - apart).clamp(min=0)).mean()

        return train(model, loss, None)

    yield Pair(
        "differences-for-distances-metric-learning",
        "TPF310",
        "distances of all pairs of a batch through all differences against torch.cdist, forward and backward",
        "float32",
        "8 × Linear(512, 512) with GELU, batch 1024 of 128 numbers",
        lambda: (metric_learning(differences), metric_learning(torch.cdist)),
        "step",
    )

    def quantising(far: OfTwo) -> Run:
        tokens, codes = (64, 32) if OPTIONS.quick else (4096, 1024)
        around = [nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU()) for _ in range(2)]
        down, up = nn.Linear(512, 64), nn.Linear(64, 512)
        table = nn.Embedding(codes, 64)
        model = nn.ModuleList([*around, down, up, table]).to(OPTIONS.device)
        states = tensor(tokens, 512)

        def loss() -> torch.Tensor:
            x = down(around[0](states))
            with torch.no_grad():
                nearest = far(x, table.weight).argmin(1)
            kept = table(nearest)
            return F.mse_loss(around[1](up(x + (kept - x).detach())), states) + F.mse_loss(kept, x.detach())

        return train(model, loss, None)

    yield Pair(
        "differences-for-distances-vector-quantiser",
        "TPF310",
        "the nearest of 1024 codes through all differences against torch.cdist",
        "float32",
        "6 × Linear with GELU, 4096 tokens of 512, codes of 64",
        lambda: (quantising(differences), quantising(torch.cdist)),
        "step",
    )


class Compressed(Dataset[torch.Tensor]):
    """Images that are unpacked, cut and scaled when they are asked for, about as dear as a small JPEG."""

    def __init__(self) -> None:
        made = np.random.default_rng(0)
        # Numbers of few values, so that unpacking has something to do.
        self.packed = [zlib.compress(made.integers(0, 32, (256, 256, 3), np.uint8).tobytes(), 6) for _ in range(64)]

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> torch.Tensor:
        pixels = np.frombuffer(zlib.decompress(self.packed[index % 64]), np.uint8).reshape(256, 256, 3)
        top, left = index % 32, index // 32 % 32
        side = 64 if OPTIONS.quick else 224
        cut = torch.from_numpy(pixels[top : top + side, left : left + side].copy()).permute(2, 0, 1).float()
        return cut.div_(255).sub_(0.45).div_(0.22)


def loaders() -> Iterator[Pair]:
    """A training that unpacks its images itself, and one whose workers do."""

    def training(workers: int) -> Run:
        loader = DataLoader(
            Compressed(), 2 if OPTIONS.quick else 64, num_workers=workers, pin_memory=OPTIONS.device == "cuda"
        )
        batches = iter(loader)
        return resnet_step(
            resnet50(), lambda: next(batches).to(OPTIONS.device, non_blocking=True), torch.bfloat16, True
        )

    yield Pair(
        "images-without-workers-resnet50",
        "TPF401",
        "images unpacked by the process that trains against eight workers",
        HALF,
        "ResNet-50, batch 64 of 3 × 224 × 224, zlib instead of JPEG, channels_last",
        lambda: (training(0), training(8)),
        "step",
    )


class UNet(nn.Module):
    """Convolutions down and up, as segmentation and diffusion have them."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        sizes = [width << level for level in range(4)]
        self.down = nn.ModuleList(self.block(a, b) for a, b in zip([3, *sizes[:-1]], sizes, strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairwise(sizes))
        self.mix = nn.ModuleList(self.block(2 * a, a) for a in sizes[:-1])
        self.out = nn.Conv2d(width, 8, 1)

    @staticmethod
    def block(taken: int, given: int) -> nn.Sequential:
        """Two convolutions with their norms."""
        first, second = nn.Conv2d(taken, given, 3, 1, 1, bias=False), nn.Conv2d(given, given, 3, 1, 1, bias=False)
        return nn.Sequential(first, nn.BatchNorm2d(given), nn.ReLU(), second, nn.BatchNorm2d(given), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, 3, height, width) to (batch, 8, height, width)."""
        kept = []
        for level, down in enumerate(self.down):
            x = down(x if level == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for level in reversed(range(3)):
            x = self.mix[level](torch.cat([kept[level], self.up[level](x)], 1))
        return self.out(x)


def layouts() -> Iterator[Pair]:
    """Networks of convolutions in half precision, with and without channels_last."""

    def training(last: bool, dtype: torch.dtype) -> Run:
        layout = torch.channels_last if last else torch.contiguous_format
        width, batch, side = (8, 2, 32) if OPTIONS.quick else (64, 16, 256)
        model = UNet(width).to(OPTIONS.device).to(memory_format=layout)  # type: ignore[call-overload]
        x = tensor(batch, 3, side, side).contiguous(memory_format=layout)
        wanted = torch.randint(0, 8, (batch, side, side), device=OPTIONS.device)
        return train(model, lambda: F.cross_entropy(model(x), wanted), dtype)

    for name, words, dtype in (("bfloat16", HALF, torch.bfloat16), ("float16", "float16 autocast", torch.float16)):
        yield Pair(
            f"no-channels-last-unet-{name}",
            "TPF354",
            "contiguous against channels_last",
            words,
            "U-Net of 64 to 512 channels, batch 16 of 3 × 256 × 256, AdamW fused",
            lambda dtype=dtype: (training(False, dtype), training(True, dtype)),  # type: ignore[misc]
            "step",
        )

    def inference(batch: int, last: bool) -> Run:
        layout = torch.channels_last if last else torch.contiguous_format
        model = resnet50().eval().bfloat16().to(memory_format=layout)  # type: ignore[call-overload]
        x = images(batch).bfloat16().contiguous(memory_format=layout)

        @torch.inference_mode()
        def step() -> None:
            model(x)

        return step

    for batch in (1, 64):
        yield Pair(
            f"no-channels-last-resnet50-inference-{batch}",
            "TPF354",
            "contiguous against channels_last",
            "bfloat16",
            f"ResNet-50 in inference, batch {batch} of 3 × 224 × 224",
            lambda batch=batch: (inference(batch, False), inference(batch, True)),  # type: ignore[misc]
            "step",
        )


if __name__ == "__main__":
    main("detours", __doc__, (gradients, sorts, distances, loaders, layouts))
