"""Tensors that grow from call to call."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int = 512):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.k = self.v = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        if self.k is not None:
            k = torch.cat([self.k, k], dim=1)  # error: TPF318
            v = torch.cat((self.v, v), dim=1)  # error: TPF318
        self.k, self.v = k, v
        return nn.functional.scaled_dot_product_attention(q, k, v)


class InADict(nn.Module):
    def forward(self, k: torch.Tensor, v: torch.Tensor, cache: dict[str, torch.Tensor]):
        cache["k"] = torch.cat([cache["k"], k], dim=-2)  # error: TPF318
        cache["v"] = torch.cat([cache["v"], v], dim=-2)  # error: TPF318
        return nn.functional.scaled_dot_product_attention(k, cache["k"], cache["v"])


class Direct(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = torch.zeros(1, 0, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        old = self.seen
        self.seen = torch.cat([old, x], 1)  # error: TPF318
        return self.seen.mean(1)


# Look-alikes


class Static(nn.Module):
    def __init__(self, longest: int):
        super().__init__()
        self.register_buffer("k", torch.zeros(1, longest, 8))

    def forward(self, k: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        self.k.index_copy_(1, position, k)
        return self.k


class Queue(nn.Module):
    """The oldest rows go."""

    def __init__(self):
        super().__init__()
        self.queue = torch.zeros(1024, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.queue = torch.cat([self.queue, x], dim=0)[-1024:]
        return self.queue


class Features(nn.Module):
    def forward(self, x: torch.Tensor, skip: torch.Tensor) -> torch.Tensor:
        self.last = torch.cat([x, skip], dim=1)
        return self.last


class Window(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.context = torch.cat([self.context[:, 1:], x], dim=1)
        return self.context


class Conditions(nn.Module):
    """The dict is new in each call."""

    def __init__(self, parts: nn.ModuleList):
        super().__init__()
        self.parts = parts

    def forward(self, x: torch.Tensor, key: str) -> dict[str, torch.Tensor]:
        output: dict[str, torch.Tensor] = {}
        for part in self.parts:
            new = part(x)
            output[key] = torch.cat((output[key], new), 1) if key in output else new
        return output


class Local(nn.Module):
    def forward(self, x: torch.Tensor, more: torch.Tensor) -> torch.Tensor:
        x = torch.cat([x, more], dim=1)
        return x


class LayerCache:
    def __init__(self):
        self.k, self.v = None, None
        self.seen = None

    def add(self, k: torch.Tensor, v: torch.Tensor):
        self.k = k if self.k is None else torch.cat([self.k, k], dim=2)  # error: TPF318
        self.v = v if self.v is None else torch.cat([self.v, v], dim=2)  # error: TPF318
        return self.k, self.v

    def note(self, x: torch.Tensor) -> None:
        self.seen = x if self.seen is None else torch.cat([self.seen, x], dim=1)


class Boxes:
    """Two objects become one."""

    def __init__(self, data: torch.Tensor, valid: torch.Tensor):
        self.data, self.valid = data, valid

    def merge(self, boxes: "Boxes") -> "Boxes":
        self.data = torch.cat([self.data, boxes.data], dim=-3)
        self.valid = torch.cat([self.valid, boxes.valid], dim=-1)
        return self


class Padded(nn.Module):
    def forward(self, features: dict[str, torch.Tensor], missing: int) -> dict[str, torch.Tensor]:
        rows = features["ids"].shape[0]
        features["ids"] = torch.cat((features["ids"], torch.ones((rows, missing))), -1)
        features["mask"] = torch.cat((features["mask"], torch.zeros((rows, missing))), -1)
        return features
