"""Substitutes of packages that are only a service here, and random data that several drivers need."""

from __future__ import annotations

import runpy
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch

SERVICES = Path(__file__).parents[3] / "tracer" / "public" / "site-packages"
_KEPT: list[torch.library.Library] = []  # declarations end with their object


class _Anything(ModuleType):
    """A module with all names: each is an object that can be called and does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class _Finder(MetaPathFinder, Loader):
    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        found = name.split(".")[0] in self._names
        return ModuleSpec(name, self, is_package=True) if found else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Anything(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs."""


def without(*names: str) -> None:
    """Let packages be imported that do nothing."""
    sys.meta_path.insert(0, _Finder(names))


def run(script: str, name: str = "__main__") -> dict[str, Any]:
    """Run a script of the program under its full path, which the recording needs, and give its globals."""
    return runpy.run_path(str(Path(script).resolve()), run_name=name)


def here() -> None:
    """Import the program's modules from the working directory."""
    sys.path.insert(0, str(Path.cwd()))


def make_grid(images: torch.Tensor, nrow: int = 8, padding: int = 2, pad_value: float = 0.0) -> torch.Tensor:
    """Images beside each other, as torchvision arranges them."""
    rows = [torch.cat(list(images[first : first + nrow]), dim=2) for first in range(0, len(images), nrow)]
    whole = [row for row in rows if row.shape == rows[0].shape]
    return torch.nn.functional.pad(torch.cat(whole, dim=1), (padding,) * 4, value=pad_value)


def normalize(images: torch.Tensor, mean: Any, std: Any) -> torch.Tensor:
    """Images less the mean, by the deviation, of each channel."""
    mean, std = (torch.as_tensor(values, dtype=images.dtype).view(-1, 1, 1) for values in (mean, std))
    return (images - mean) / std


def to_image(picture: torch.Tensor) -> Any:
    """An image of PIL."""
    from PIL import Image

    return Image.fromarray((picture.permute(1, 2, 0).numpy() * 255).astype(np.uint8))


def vision() -> None:
    """Let torchvision be imported beside a torch of another build: the operators that it registers are declared."""
    boxes = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        boxes.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _KEPT.append(boxes)


def digits(count: int) -> type[torch.utils.data.Dataset[Any]]:
    """A dataset of digits that are noise, with the arguments of torchvision's."""

    class Digits(torch.utils.data.Dataset[Any]):
        def __init__(self, root: object, train: bool = True, **options: object) -> None:
            self.targets = torch.arange(count) % 10

        def __len__(self) -> int:
            return count

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            generator = torch.Generator().manual_seed(index)
            return torch.rand(1, 28, 28, generator=generator), index % 10

    return Digits
