"""Run a program without what it only draws or reports with, and with stand-ins: `older.py SCRIPT [ARGUMENTS]`.

It gives NumPy, SciPy, PyYAML and transformers their old names, compares no checksums of data, loads no weights of VGG
and BERT, and has stand-ins for `gym` (screens of noise), for `rasterio` (frames of noise), for `datasets` (a text of
random letters, sentences of random words) and for the logger of W&B. Without a GPU, `cuda()` moves nothing.
"""

from __future__ import annotations

import importlib.util
import os
import random
import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
import torchvision
import yaml

SILENT = "matplotlib matplotlib.pyplot tensorboardX torch.utils.tensorboard torchinfo pandas".split()
LETTERS = "".join(map(chr, range(97, 123))) + "\n ,.;-"


class Discrete:
    """A number of actions."""

    def __init__(self, n: int) -> None:
        self.n = n


class Environment:
    """An environment of the old interface whose screens are noise, and which ends by chance: cart pole or pendulum."""

    def __init__(self, name: str) -> None:
        self.unwrapped = self
        self.is_pole = name.startswith("CartPole")
        self.observation_space = SimpleNamespace(shape=(4 if self.is_pole else 3,))
        torque = np.array([2.0], dtype=np.float32)
        self.action_space = Discrete(2) if self.is_pole else SimpleNamespace(shape=(1,), high=torque, low=-torque)

    def seed(self, number: int) -> None:
        """Begin the noise with a number."""
        random.seed(number)
        np.random.seed(number)

    def reset(self) -> np.ndarray:
        """The first observation."""
        return np.random.rand(*self.observation_space.shape)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, dict[str, Any]]:
        """An observation, a reward, whether the episode is over, and nothing else."""
        reward = 1.0 if self.is_pole else random.random()
        return np.random.rand(*self.observation_space.shape), reward, random.random() < 0.05, {}

    def render(self, mode: str) -> np.ndarray:
        """A screen."""
        return np.random.randint(0, 256, (400, 600, 3), dtype=np.uint8)

    def close(self) -> None:
        """Nothing."""


def frames(path: str) -> SimpleNamespace:
    """A file with one frame of a satellite: 14 bands."""
    return SimpleNamespace(read=lambda: np.random.rand(14, 64, 64).astype(np.float32))


def poems(name: str) -> dict[str, Any]:
    """A data set of texts."""
    few = random.Random(0)
    return {"train": {"text": np.array(["".join(few.choices(LETTERS, k=2_000)) for _ in range(10)])}}


def sentences() -> list[dict[str, dict[str, str]]]:
    """Sentences of random words, in two languages."""
    few = random.Random(0)
    known = ["".join(few.choices(LETTERS[:26], k=few.randint(2, 9))) for _ in range(8_000)]
    pair = lambda: {name: " ".join(few.choices(known, k=few.randint(5, 45))) for name in ("de", "en")}  # noqa: E731
    return [{"translation": pair()} for _ in range(4_000)]


class Texts(dict[str, Any]):
    """Rows of a data set: all of them are a dictionary of columns."""

    def __getitem__(self, key: Any) -> Any:
        return self if isinstance(key, slice) else super().__getitem__(key)


def stand_in(name: str, **parts: Any) -> None:
    """Put a module in place of one that is not there."""
    module = ModuleType(name)
    module.__dict__.update(parts)
    sys.modules[name] = module


def main() -> None:
    """Prepare the names and run the script."""
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    is_lightning = "lightning" in text
    for name in ("turtle", *(() if is_lightning else SILENT)):
        sys.modules[name] = MagicMock()
    if not is_lightning:
        sys.modules["matplotlib"].pyplot.subplots = lambda *rest: (MagicMock(), MagicMock())
    kinds = {name: type(name, (), {}) for name in ("Wrapper", "ObservationWrapper", "RewardWrapper")}
    spaces = SimpleNamespace(Discrete=Discrete, Box=SimpleNamespace)
    stand_in("gym", make=Environment, spaces=spaces, logger=MagicMock(), **kinds)
    stand_in("atari_py", list_games=list)
    stand_in("rasterio", open=frames)
    if not Path("datasets").is_dir():
        one = lambda name: {"train": Texts(poems(name)["train"])}  # noqa: E731
        stand_in("datasets", load_dataset=lambda name, *pair, **options: sentences() if pair else one(name))
    if importlib.util.find_spec("scipy") is not None:
        stand_in("scipy.sparse.linalg.eigen")
        stand_in("scipy.sparse.linalg.eigen.arpack", eigsh=None)
    for name, kind in {"bool": bool, "int": int, "float": float}.items():
        if not hasattr(np, name):
            setattr(np, name, kind)
    loaded = yaml.load
    yaml.load = lambda file, Loader=yaml.SafeLoader: loaded(file, Loader)
    torchvision.datasets.cifar.check_integrity = lambda *rest: True
    sys.argv = sys.argv[1:]
    torch.hub.load_state_dict_from_url = lambda url: {}
    made = torchvision.models.vgg._vgg
    torchvision.models.vgg._vgg = lambda layers, norm, weights, *rest: made(layers, norm, None, *rest)
    if not torch.cuda.is_available():
        torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *rest, **options: self
    if "transformers" in text:
        from transformers import BertConfig, BertModel

        BertModel.from_pretrained = classmethod(lambda kind, name: kind(BertConfig()))
        # The first import of a part puts another module in the place of the package.
        sys.modules["transformers"].AdamW = torch.optim.AdamW
    if is_lightning:
        import lightning.pytorch.loggers

        lightning.pytorch.loggers.WandbLogger = lambda **options: False
    sys.path[:0] = [os.getcwd(), str(Path(sys.argv[0]).parent.resolve())]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
