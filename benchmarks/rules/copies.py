"""What copies cost that nothing needs: repeated tensors, clones that nobody writes to, lists of arrays.

Prints the rows of `perflint/rules/worth.toml`.
Usage: python benchmarks/rules/copies.py [--device cpu --quick] [PREFIX …]  (only the rows whose name starts so)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from programs import policy_step, train
from timing import OPTIONS, Pair, Run, main, tensor
from torch import nn
from torch.nn import functional as F

HALF = "bfloat16 autocast"
Change = Callable[[torch.Tensor], torch.Tensor]


def same(x: torch.Tensor) -> torch.Tensor:
    """The good form of a copy."""
    return x


class Layer(nn.Module):
    """A transformer layer with a bias on its attention scores; `keep` makes what is added to its output again."""

    def __init__(self, width: int, heads: int, keep: Change) -> None:
        super().__init__()
        self.heads, self.keep = heads, keep
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """(batch, tokens, width) to the same; the bias is (batch, heads, tokens, tokens)."""
        batch, tokens, width = x.shape
        kept = self.keep(x)
        query, key, value = self.qkv(self.first(x)).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        x = kept + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        kept = self.keep(x)
        return kept + self.down(F.gelu(self.up(self.second(x))))


class Vision(nn.Module):
    """ViT-B/16 of 86 M parameters, or smaller. `start` joins patches with the model's own tokens."""

    def __init__(
        self,
        keep: Change = same,
        start: Callable[[Vision, torch.Tensor], torch.Tensor] | None = None,
        spread: Callable[[torch.Tensor, int], torch.Tensor] | None = None,
    ) -> None:
        super().__init__()
        width, heads, layers, tokens = (64, 4, 2, 16) if OPTIONS.quick else (768, 12, 12, 256)
        self.patches = nn.Linear(768, width)
        self.classes = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, tokens + 1, width))
        self.layers = nn.ModuleList(Layer(width, heads, keep) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)
        self.start, self.spread = start or joined_by_expand, spread
        self.bias = torch.randn(1, heads, tokens, tokens, device=OPTIONS.device, dtype=torch.bfloat16)

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        """The classes of (batch, tokens, 768)."""
        x = self.start(self, self.patches(patches))
        for layer in self.layers:
            x = layer(x, None if self.spread is None else self.spread(self.bias, len(x)))
        return self.head(self.norm(x[:, 0]))


def joined_by_repeat(model: Vision, x: torch.Tensor) -> torch.Tensor:
    """The class token in front, positions added, both repeated for each image."""
    x = torch.cat([model.classes.repeat(x.shape[0], 1, 1), x], dim=1)
    return x + model.positions.repeat(x.shape[0], 1, 1)


def joined_by_expand(model: Vision, x: torch.Tensor) -> torch.Tensor:
    """The same of views."""
    x = torch.cat([model.classes.expand(x.shape[0], -1, -1), x], dim=1)
    return x + model.positions.expand(x.shape[0], -1, -1)


def patches_alone(model: Vision, x: torch.Tensor) -> torch.Tensor:
    """Patches with their positions, without a class token: a number of them that attention kernels like."""
    return x + model.positions[:, 1:]


def masked_by_repeat(model: Vision, x: torch.Tensor) -> torch.Tensor:
    """Three quarters of the patches left out by random choice, with an index for each number of a token."""
    x = joined_by_expand(model, x)[:, 1:]
    kept = torch.rand(x.shape[:2], device=x.device).argsort(dim=1)[:, : x.shape[1] // 4]
    return torch.gather(x, dim=1, index=kept.unsqueeze(-1).repeat(1, 1, x.shape[2]))


def masked_by_expand(model: Vision, x: torch.Tensor) -> torch.Tensor:
    """The same with one index for each token."""
    x = joined_by_expand(model, x)[:, 1:]
    kept = torch.rand(x.shape[:2], device=x.device).argsort(dim=1)[:, : x.shape[1] // 4]
    return torch.gather(x, dim=1, index=kept.unsqueeze(-1).expand(-1, -1, x.shape[2]))


def training(model: Vision) -> Run:
    """A training step of batch 64 under bfloat16 autocast."""
    batch, tokens = (2, 16) if OPTIONS.quick else (64, 256)
    model = model.to(OPTIONS.device)
    patches, targets = tensor(batch, tokens, 768), torch.randint(0, 1000, (batch,), device=OPTIONS.device)
    return train(model, lambda: F.cross_entropy(model(patches), targets))


def in_vit(rule: str, name: str, words: str, bad: Callable[[], Vision], good: Callable[[], Vision]) -> Pair:
    """A pair of whole training steps of the vision transformer."""
    shape = "ViT-B/16, batch 64 of 256 patches, AdamW fused"
    return Pair(f"{name}-vit", rule, words, HALF, shape, lambda: (training(bad()), training(good())), "step")


def repeats() -> Iterator[Pair]:
    """Tensors of one row repeated over a batch, against views of them."""

    def alone() -> tuple[Run, Run]:
        x, positions = tensor(64, 256, 768), tensor(1, 256, 768)
        return lambda: x + positions.repeat(64, 1, 1), lambda: x + positions.expand(64, -1, -1)

    yield Pair(
        "repeat-positions",
        "TPF212",
        "x + positions.repeat(64, 1, 1) against expand",
        "float32",
        "64 × 256 × 768",
        alone,
    )
    yield in_vit(
        "TPF212",
        "repeat-tokens",
        "class token and positions repeated over the batch against expand",
        lambda: Vision(start=joined_by_repeat),
        Vision,
    )
    yield in_vit(
        "TPF212",
        "repeat-gather-index",
        "an index repeated for each number of a token, for a gather of a quarter of the patches, against expand",
        lambda: Vision(start=masked_by_repeat),
        lambda: Vision(start=masked_by_expand),
    )
    yield in_vit(
        "TPF212",
        "repeat-bias-each-layer",
        "a bias of the attention scores repeated over the batch in each of 12 layers against expand",
        lambda: Vision(start=patches_alone, spread=lambda bias, count: bias.repeat(count, 1, 1, 1)),
        lambda: Vision(start=patches_alone, spread=lambda bias, count: bias.expand(count, -1, -1, -1)),
    )


def clones() -> Iterator[Pair]:
    """Clones that nothing writes to."""

    def alone() -> tuple[Run, Run]:
        x, y = tensor(64, 3, 224, 224), tensor(64, 3, 224, 224)
        return lambda: x.clone() + y, lambda: x + y

    yield Pair("clone-in-sum", "TPF213", "x.clone() + y against x + y", "float32", "64 × 3 × 224 × 224", alone)
    yield in_vit(
        "TPF213",
        "clone-each-layer",
        "the input of each residual branch cloned in each of 12 layers against none",
        lambda: Vision(keep=torch.clone),
        Vision,
    )


def arrays() -> Iterator[Pair]:
    """Lists of arrays that torch reads number by number."""

    def fetched(make: Callable[[list[np.ndarray]], torch.Tensor]) -> Run:
        width, count = (32, 8) if OPTIONS.quick else (512, 256)
        states = [np.random.rand(width).astype(np.float32) for _ in range(count)]
        return policy_step(lambda logits: make(states).to(logits.device))

    yield Pair(
        "list-of-arrays-policy",
        "TPF214",
        "torch.tensor(list of 256 arrays of 512) against torch.from_numpy(numpy.stack(list))",
        "float32",
        "8 × Linear(512, 512) with GELU, batch 256",
        lambda: (fetched(torch.tensor), fetched(lambda states: torch.from_numpy(np.stack(states)))),
        "step",
    )


if __name__ == "__main__":
    main("copies", __doc__, (repeats, clones, arrays))
