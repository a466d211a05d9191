"""What decoding costs without a cache, and one prompt at a time.

Prints the rows of `perflint/rules/worth.toml`.
Usage: python benchmarks/rules/decoding.py [--device cpu --quick] [PREFIX …]  (only the rows whose name starts so)
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from programs import GPT, ids
from timing import OPTIONS, Pair, Run, main
from torch.nn import functional as F

NEW = 32


class Decoder:
    """GPT-2 with a cache of fixed size for the keys and values of all layers."""

    def __init__(self, batch: int, prompt: int) -> None:
        self.model = GPT().to(OPTIONS.device, torch.bfloat16).eval()
        self.prompt = ids(batch, prompt)
        heads, width = self.model.blocks[0].heads, self.model.norm.weight.shape[0]
        shape = (len(self.model.blocks), 2, len(self.prompt), heads, self.prompt.shape[1] + NEW, width // heads)
        self.cache = torch.zeros(shape, device=OPTIONS.device, dtype=torch.bfloat16)

    def logits(self, tokens: torch.Tensor, start: int) -> torch.Tensor:
        """The logits behind the last of (batch, tokens) that follow `start` tokens in the cache."""
        end = start + tokens.shape[1]
        x = self.model.tokens(tokens) + self.model.positions(torch.arange(start, end, device=tokens.device))
        for block, (keys, values) in zip(self.model.blocks, self.cache, strict=True):
            batch, count, width = x.shape
            qkv = block.qkv(block.first(x)).view(batch, count, 3, block.heads, width // block.heads)
            query, key, value = qkv.permute(2, 0, 3, 1, 4)
            keys[:, :, start:end], values[:, :, start:end] = key, value
            mixed = F.scaled_dot_product_attention(query, keys[:, :, :end], values[:, :, :end], is_causal=start == 0)
            x = x + block.out(mixed.transpose(1, 2).reshape(batch, count, width))
            x = x + block.down(F.gelu(block.up(block.second(x))))
        return self.model.head(self.model.norm(x[:, -1:]))

    @torch.inference_mode()
    def run(self, cached: bool) -> torch.Tensor:
        """Greedy decoding of `NEW` tokens."""
        tokens, last = self.prompt, self.prompt
        for step in range(NEW):
            start = 0 if step == 0 or not cached else tokens.shape[1] - 1
            last = self.logits(last if cached else tokens, start).argmax(-1)
            tokens = torch.cat([tokens, last], dim=1)
        return tokens


def decoding() -> Iterator[Pair]:
    """The whole sequence for each token, and prompts one by one."""
    shape = f"GPT-2 of 124 M parameters, {{}}, {NEW} new tokens"

    def of_cache(batch: int, prompt: int) -> tuple[Run, Run]:
        decoder = Decoder(batch, prompt)
        return lambda: decoder.run(cached=False), lambda: decoder.run(cached=True)

    for batch, prompt in ((1, 128), (1, 960), (16, 960)):
        yield Pair(
            f"decoding-without-cache-{batch}-{prompt}",
            "TPF317",
            "the whole sequence computed for each token against a cache of keys and values",
            "bfloat16",
            shape.format(f"{batch} × {prompt} tokens"),
            lambda batch=batch, prompt=prompt: of_cache(batch, prompt),
            "step",
        )

    def of_batch() -> tuple[Run, Run]:
        one, many = Decoder(1, 128), Decoder(8, 128)
        return lambda: [one.run(cached=True) for _ in range(8)], lambda: many.run(cached=True)

    yield Pair(
        "one-prompt-at-a-time",
        "TPF946",
        "8 prompts decoded one by one against one batch",
        "bfloat16",
        shape.format("8 × 128 tokens"),
        of_batch,
        "step",
    )


if __name__ == "__main__":
    main("decoding", __doc__, (decoding,))
