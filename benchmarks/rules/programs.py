"""Small but representative programs, in whose steps patterns are planted."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from timing import OPTIONS, Run, tensor
from torch import nn
from torch.nn import functional as F

Hook = Callable[[torch.Tensor], object]
Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
HOST_WORK_MS = 2.0
"""Of fetching a batch, collating and logging, between a step's end and the next step's first kernel."""


def host_work(ms: float = HOST_WORK_MS) -> None:
    """Keep the host busy for so long, launching nothing."""
    end = time.perf_counter() + ms / 1e3
    while time.perf_counter() < end:
        pass


def causal(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Attention to what came before."""
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


class Block(nn.Module):
    """A transformer layer that attends as it is told, and shows its output to a hook."""

    def __init__(self, width: int, heads: int, attend: Attend = causal) -> None:
        super().__init__()
        self.heads, self.attend = heads, attend
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor, hook: Hook | None = None) -> torch.Tensor:
        """(batch, tokens, width) to the same."""
        batch, tokens, width = x.shape
        qkv = self.qkv(self.first(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        mixed = self.attend(query, key, value)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        if hook is not None:
            with torch.no_grad():
                hook(x.detach())
        return x + self.down(F.gelu(self.up(self.second(x))))


class GPT(nn.Module):
    """GPT-2 of 124 M parameters, or smaller; `forward` gives the loss."""

    def __init__(self, width: int = 768, heads: int = 12, layers: int = 12, vocabulary: int = 50304) -> None:
        super().__init__()
        if OPTIONS.quick:
            width, heads, layers, vocabulary = 64, 4, 2, 512
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(1024, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.hook: Hook | None = None

    def features(self, ids: torch.Tensor) -> torch.Tensor:
        """(batch, tokens) to (batch, tokens, width)."""
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x, self.hook)
        return self.norm(x)

    def logits(self, ids: torch.Tensor) -> torch.Tensor:
        """(batch, tokens) to (batch, tokens, vocabulary)."""
        return self.head(self.features(ids))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The loss of (batch, tokens) as their own targets."""
        return F.cross_entropy(self.logits(ids).flatten(0, 1), ids.flatten())


def ids(batch: int, tokens: int, vocabulary: int = 50000) -> torch.Tensor:
    """Random tokens on the device."""
    if OPTIONS.quick:
        batch, tokens, vocabulary = 2, 32, 500
    return torch.randint(0, vocabulary, (batch, tokens), device=OPTIONS.device)


def train(
    model: nn.Module,
    loss_of: Callable[[], torch.Tensor],
    dtype: torch.dtype | None = torch.bfloat16,
    *,
    backward: Hook = torch.Tensor.backward,
    end: Hook | None = None,
    ms: float = 0,
) -> Run:
    """A training step with AdamW, whose forward pass runs under autocast to `dtype`, if it is given.

    `end` sees the loss after the update, and `ms` of CPU work follows it.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step() -> None:
        with torch.autocast(OPTIONS.device, dtype or torch.bfloat16, enabled=dtype is not None):
            loss = loss_of()
        backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if end is not None:
            end(loss)
        if ms:
            host_work(ms)

    return step


def gpt_step(
    model: GPT, batch: torch.Tensor, *, layer: Hook | None = None, end: Hook | None = None, ms: float = 0
) -> Run:
    """A training step under bfloat16 autocast; `layer` sees the output of each layer, and `end` the loss."""

    def loss_of() -> torch.Tensor:
        model.hook = layer
        return model(batch)

    return train(model, loss_of, end=None if end is None else lambda loss: end(loss.detach()), ms=ms)


def policy_step(end: Hook | None) -> Run:
    """A training step of a policy network: eight small layers, bound by the launches of the host."""
    width = 32 if OPTIONS.quick else 512
    body = [each for _ in range(8) for each in (nn.Linear(width, width), nn.GELU())]
    model = nn.Sequential(*body, nn.Linear(width, 16)).to(OPTIONS.device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    states, actions = tensor(256, width), torch.randint(0, 16, (256,), device=OPTIONS.device)

    def step() -> None:
        optimizer.zero_grad()
        logits = model(states)
        F.cross_entropy(logits, actions).backward()
        optimizer.step()
        if end is not None:
            with torch.no_grad():
                end(logits.detach())

    return step


class Bottleneck(nn.Module):
    """Three convolutions around a short cut."""

    def __init__(self, taken: int, width: int, stride: int, bias: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(taken, width, 1, bias=bias),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=bias),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, 4 * width, 1, bias=bias),
            nn.BatchNorm2d(4 * width),
        )
        self.short = nn.Sequential()
        if stride != 1 or taken != 4 * width:
            self.short = nn.Sequential(nn.Conv2d(taken, 4 * width, 1, stride, bias=bias), nn.BatchNorm2d(4 * width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, taken, height, width) to (batch, 4 · width, …)."""
        return F.relu(self.body(x) + self.short(x), inplace=True)


def resnet50(bias: bool = False) -> nn.Sequential:
    """ResNet-50, or one with a bias in each convolution; smaller for a quick try."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=bias),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    taken = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for each in range(1 if OPTIONS.quick else blocks):
            layers.append(Bottleneck(taken, width, stride if each == 0 else 1, bias))
            taken = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)).to(OPTIONS.device)


def images(batch: int, device: str = "") -> torch.Tensor:
    """Random images of 224 × 224."""
    size = 64 if OPTIONS.quick else 224
    return torch.randn(min(batch, 2) if OPTIONS.quick else batch, 3, size, size, device=device or OPTIONS.device)


def resnet_step(
    model: nn.Module, fetch: Callable[[], torch.Tensor], dtype: torch.dtype | None, last: bool, ms: float = 0
) -> Run:
    """A training step on the result of `fetch`, after `ms` of CPU work."""
    layout = torch.channels_last if last else torch.contiguous_format
    model = model.to(memory_format=layout)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
    targets = torch.randint(0, 1000, (len(fetch()),), device=OPTIONS.device)

    def step() -> None:
        if ms:
            host_work(ms)
        batch = fetch().contiguous(memory_format=layout)
        with torch.autocast(OPTIONS.device, dtype or torch.bfloat16, enabled=dtype is not None):
            loss = F.cross_entropy(model(batch), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
