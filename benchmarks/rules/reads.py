"""What masks, lengths, sampling and logging cost in steps that read them on the host.

Prints the rows of `perflint/rules/worth.toml`.
Usage: python benchmarks/rules/reads.py [--device cpu --quick] [PREFIX …]  (only the rows whose name starts so)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from programs import GPT, HOST_WORK_MS, ids, images, policy_step, resnet50, resnet_step, train
from timing import OPTIONS, Pair, Run, main, tensor
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

GPT_SHAPE = "GPT-2 of 124 M parameters, batch 8 of 1024 tokens, AdamW fused"
HALF = "bfloat16 autocast"
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Make = Callable[[float], tuple[Run, Run]]


def with_host_work(name: str, rule: str, words: str, dtype: str, shape: str, make: Make) -> Iterator[Pair]:
    """A pair of whole steps, and the same with CPU work between a step's end and the next."""
    yield Pair(name, rule, words, dtype, shape, lambda: make(0), "step")
    behind = f"{words}, {HOST_WORK_MS:g} ms of CPU work after it"
    yield Pair(f"{name}-host-work", rule, behind, dtype, shape, lambda: make(HOST_WORK_MS), "step")


def selecting(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The loss of the rows that a mask selects."""
    kept = labels != -100
    return F.cross_entropy(logits[kept], labels[kept])


def ignoring(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The same with `ignore_index`."""
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=-100)


def masks() -> Iterator[Pair]:
    """Rows selected by a mask before the loss, against rows that the loss ignores."""
    for name, share in (("padding", 0.15), ("masked-words", 0.85)):

        def in_gpt(ms: float, share: float = share) -> tuple[Run, Run]:
            model, batch = GPT().to(OPTIONS.device), ids(8, 1024)
            labels = batch.masked_fill(torch.rand(batch.shape, device=OPTIONS.device) < share, -100)
            left, right = (
                train(model, lambda loss=loss: loss(model.logits(batch), labels), ms=ms)  # type: ignore[misc]
                for loss in (selecting, ignoring)
            )
            return left, right

        words = f"logits[mask] before cross_entropy against ignore_index, {share:.0%} of the rows ignored"
        yield from with_host_work(f"mask-before-loss-{name}", "TPF111", words, HALF, GPT_SHAPE, in_gpt)

    def small() -> tuple[Run, Run]:
        width = 32 if OPTIONS.quick else 512
        body = [each for _ in range(8) for each in (nn.Linear(width, width), nn.GELU())]
        model = nn.Sequential(*body, nn.Linear(width, 16)).to(OPTIONS.device)
        x, labels = tensor(256, width), torch.randint(0, 16, (256,), device=OPTIONS.device)
        labels = labels.masked_fill(torch.rand(256, device=OPTIONS.device) < 0.15, -100)
        left, right = (
            train(model, lambda loss=loss: loss(model(x), labels), None)  # type: ignore[misc]
            for loss in (selecting, ignoring)
        )
        return left, right

    words = "logits[mask] before cross_entropy against ignore_index in each step of a launch-bound loop"
    shape = "8 × Linear(512, 512) with GELU, batch 256, AdamW fused"
    yield Pair("mask-before-loss-policy", "TPF111", words, "float32", shape, small, "step")


def encoders() -> Iterator[Pair]:
    """An encoder with a causal mask that compares it, against one that is told."""

    def encoder(size: int, layers: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
        width, tokens = (32, 16) if OPTIONS.quick else (512, size)
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, dropout=0.0)
        model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(OPTIONS.device)
        mask = nn.Transformer.generate_square_subsequent_mask(tokens, device=torch.device(OPTIONS.device))
        return model, tensor(8, tokens, width), mask

    for size in (128, 1024):

        def trained(ms: float, size: int = size) -> tuple[Run, Run]:
            model, x, mask = encoder(size, 6)
            left, right = (
                train(model, lambda told=told: model(x, mask=mask, is_causal=told).square().mean(), ms=ms)  # type: ignore[misc]
                for told in (None, True)
            )
            return left, right

        shape = f"TransformerEncoder, 6 layers of width 512, 8 × {size} tokens"
        words = f"encoder(x, mask=causal) against is_causal=True, training with {size} tokens"
        yield from with_host_work(f"causal-detect-{size}", "TPF128", words, HALF, shape, trained)


def averages() -> Iterator[Pair]:
    """Batch norms that average over all batches, which reads a counter in each."""

    def step(ms: float) -> tuple[Run, Run]:
        batch = images(64)

        def run(momentum: float | None) -> Run:
            model = resnet50()
            for module in model.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.momentum = momentum
            return resnet_step(model, lambda: batch, torch.bfloat16, True, ms)

        return run(None), run(0.1)

    yield from with_host_work(
        "batch-norm-cumulative-resnet50",
        "TPF136",
        "BatchNorm2d(momentum=None) against 0.1, training",
        HALF,
        "ResNet-50, batch 64 of 3 × 224 × 224, channels_last",
        step,
    )


class Tagger(nn.Module):
    """A recurrent tagger over packed sequences."""

    def __init__(self) -> None:
        super().__init__()
        width = 32 if OPTIONS.quick else 512
        self.rnn, self.head = nn.LSTM(width, width, 2, batch_first=True), nn.Linear(width, 64)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """(batch, tokens, width) to (batch, tokens, 64)."""
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True)
        scores: torch.Tensor = self.head(pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0])
        return scores


def lengths() -> Iterator[Pair]:
    """Lengths of sequences on the device, against those of the host."""
    batch, tokens = (4, 12) if OPTIONS.quick else (64, 128)

    def packing(ms: float) -> tuple[Run, Run]:
        model = Tagger().to(OPTIONS.device)
        x = tensor(batch, tokens, 32 if OPTIONS.quick else 512)
        host = torch.linspace(tokens, tokens // 2, batch).long()
        left, right = (
            train(model, lambda given=given: model(x, given).square().mean(), ms=ms)  # type: ignore[misc]
            for given in (host.to(OPTIONS.device), host)
        )
        return left, right

    yield from with_host_work(
        "packed-lengths",
        "TPF109",
        "pack_padded_sequence(x, lengths.cpu()) of GPU lengths against CPU lengths, training",
        HALF,
        "LSTM of two layers of width 512, 64 × 128 tokens",
        packing,
    )

    def transcribing(ms: float) -> tuple[Run, Run]:
        width = 32 if OPTIONS.quick else 512
        body = [each for _ in range(8) for each in (nn.Linear(width, width), nn.GELU())]
        model = nn.Sequential(*body, nn.Linear(width, 32)).to(OPTIONS.device)
        frames, labels = (20, 4) if OPTIONS.quick else (400, 60)
        x = tensor(frames, 16, width)
        targets = torch.randint(1, 32, (16, labels), device=OPTIONS.device)
        ends = torch.full((16,), frames), torch.full((16,), labels)

        def loss(*given: torch.Tensor) -> torch.Tensor:
            return F.ctc_loss(model(x).float().log_softmax(2), targets, *given)

        left, right = (
            train(model, lambda given=given: loss(*given), ms=ms)  # type: ignore[misc]
            for given in (tuple(end.to(OPTIONS.device) for end in ends), ends)
        )
        return left, right

    yield from with_host_work(
        "ctc-lengths",
        "TPF136",
        "ctc_loss with lengths on the GPU against the CPU's, training",
        HALF,
        "8 × Linear(512, 512) with GELU over 400 × 16 frames, 60 labels",
        transcribing,
    )


def sampling() -> Iterator[Pair]:
    """Tokens drawn on the host, against the device."""

    def decoding(tokens: int, batch: int) -> tuple[Run, Run]:
        model, prompt = GPT().to(OPTIONS.device, torch.bfloat16).eval(), ids(batch, tokens)

        def run(on_host: bool) -> Run:
            @torch.inference_mode()
            def step() -> None:
                given = prompt
                for _ in range(2 if OPTIONS.quick else 16):
                    chances = model.logits(given)[:, -1].float().softmax(-1)
                    if on_host:
                        token = torch.multinomial(chances.cpu(), 1).to(OPTIONS.device)
                    else:
                        token = torch.multinomial(chances, 1)
                    given = torch.cat([given[:, 1:], token], 1)

            return step

        return run(True), run(False)

    for name, tokens, batch in (("gpt-1", 128, 1), ("gpt-32", 128, 32)):
        yield Pair(
            f"multinomial-on-host-{name}",
            "TPF134",
            "torch.multinomial(p.cpu(), 1).to(device) per token against torch.multinomial(p, 1)",
            "bfloat16",
            f"GPT-2 of 124 M parameters without a cache, {batch} × {tokens} tokens, 16 tokens drawn",
            lambda t=tokens, b=batch: decoding(t, b),  # type: ignore[misc]
            "step",
        )


def logging() -> Iterator[Pair]:
    """What a `training_step` reads of its loss to log it, between the forward and the backward pass."""

    def in_gpt(ms: float) -> tuple[Run, Run]:
        model, batch = GPT().to(OPTIONS.device), ids(8, 1024)

        def read(loss: torch.Tensor) -> None:
            loss.item()
            loss.backward()

        return train(model, lambda: model(batch), backward=read, ms=ms), train(model, lambda: model(batch), ms=ms)

    words = "loss.item() in training_step, before the backward pass, against the tensor"
    yield from with_host_work("logged-item-gpt", "TPF941", words, HALF, GPT_SHAPE, in_gpt)
    yield Pair(
        "logged-item-policy",
        "TPF941",
        "loss.item() in each step of a launch-bound loop against the tensor",
        "float32",
        "8 × Linear(512, 512) with GELU, batch 256, AdamW fused",
        lambda: (policy_step(lambda x: x.mean().item()), policy_step(lambda x: x.mean())),
        "step",
    )


if __name__ == "__main__":
    main("reads", __doc__, (masks, encoders, averages, lengths, sampling, logging))
