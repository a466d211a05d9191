"""Small random data, as each program expects to find it. Each function gets the folder in which the program runs."""

from __future__ import annotations

import json
import pickle
import random
import struct
from pathlib import Path

import numpy as np

COLUMNS = 32
Size = tuple[int, int]
"""The width and height of an image."""


def image(path: Path, size: Size = (COLUMNS, COLUMNS), values: tuple[int, ...] = ()) -> None:
    """An image of noise, or a mask of some values."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    table = np.random.randint(0, 256, (*size[::-1], 3), dtype=np.uint8)
    if values:
        table = np.random.choice(np.array(values, dtype=np.uint8), size[::-1])
    Image.fromarray(table).save(path)


def _classes(folder: Path, count: int, size: int = COLUMNS) -> None:
    for index in range(count):
        image(folder / f"class{index % 2}" / f"{index}.png", (size, size))


def images(folder: Path) -> None:
    """Images of two classes."""
    _classes(folder / "images", 24)


def sampled_images(folder: Path) -> None:
    """Images of two classes, and the folders that the program writes to."""
    images(folder)
    for name in ("sample", "checkpoint"):
        (folder / name).mkdir(exist_ok=True)


def imagenet(folder: Path) -> None:
    """Images to train on and to evaluate on."""
    for part in ("train", "val"):
        _classes(folder / "imagenet" / part, 12, 64)


def plain_images(folder: Path) -> None:
    """Images without classes; a hundred is the fewest that the program takes."""
    for index in range(104):
        image(folder / "images" / f"{index}.png", (16, 16))


def tokens(folder: Path, count: int = 4096) -> None:
    """Tokens of a text, as a memory map."""
    for part in ("train", "val"):
        path = folder / "data" / "tiny" / f"{part}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.random.randint(0, 256, count, dtype=np.uint16).tofile(path)


def words(folder: Path) -> None:
    """Texts of random words."""
    for part in ("train", "valid", "test"):
        path = folder / "data" / "tiny" / f"{part}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{' '.join(random.choices('abcdefgh', k=10))}\n" for _ in range(60)))


def sentences(folder: Path, size: int = 0, counts: Size = (16, 8), lengths: Size = (3, 9)) -> None:
    """Pairs of sentences with their vocabularies of some size, in one pickle that dill reads."""
    import sys
    from types import SimpleNamespace

    sys.path.insert(0, str(Path(__file__).parent / "site-packages"))
    from torchtext.data import Field

    special = ["<blank>", "<unk>", "<s>", "</s>"]
    known = [f"word{index}" for index in range(size)] or [*"abcdefgh"]
    pairs = [
        {side: ["<s>", *random.choices(known, k=random.randint(*lengths)), "</s>"] for side in ("src", "trg")}
        for _ in range(sum(counts))
    ]
    vocabulary = {side: Field([*special, *known]) for side in ("src", "trg")}
    document: dict[str, object] = {"settings": SimpleNamespace(max_len=20), "vocab": vocabulary}
    document |= {"train": pairs[: counts[0]], "valid": pairs[counts[0] :]}
    (folder / "data.pkl").write_bytes(pickle.dumps(document))


def citations(folder: Path, columns: int = COLUMNS, cites: int = 3000) -> None:
    """A graph of papers: words, class and citations of each."""
    place = folder / "data" / "cora"
    place.mkdir(parents=True, exist_ok=True)
    rows = (np.random.rand(1500, columns) < 0.2).astype(int)
    with (place / "cora.content").open("w") as file:
        for index, row in enumerate(rows):
            file.write(f"{index} {' '.join(map(str, row))} class{index % 7}\n")
    edges = np.random.randint(0, 1500, (cites, 2))
    (place / "cora.cites").write_text("".join(f"{a} {b}\n" for a, b in edges))


def mnist(folder: Path, train: int = 48, within: str = "../../data/mnist") -> None:
    """Digits, in the files of the data set; two folders up by default, where the program looks."""
    place = folder / within / "MNIST" / "raw"
    place.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", train), ("t10k", 16)):
        digits = np.random.randint(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = np.random.randint(0, 10, count, dtype=np.uint8)
        (place / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, count, 28, 28) + digits.tobytes())
        (place / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, count) + labels.tobytes())


def masks(folder: Path, size: Size = (COLUMNS, COLUMNS), count: int = 8) -> None:
    """Images with masks."""
    for index in range(count):
        image(folder / "data" / "imgs" / f"{index}.png", size)
        image(folder / "data" / "masks" / f"{index}.png", size, values=(0, 1))


def cifar(place: Path, files: dict[str, int], label: str, classes: int, meta: tuple[str, str]) -> None:
    """Small images of some classes: `files` has the number of images in each file, `meta` a file and its key."""
    place.mkdir(parents=True, exist_ok=True)
    for name, count in files.items():
        table = np.random.randint(0, 256, (count, 3072), dtype=np.uint8)
        rows = {"data": table, label: [index % classes for index in range(count)]}
        (place / name).write_bytes(pickle.dumps(rows))
    (place / meta[0]).write_bytes(pickle.dumps({meta[1]: [f"class{index}" for index in range(classes)]}))


def _cifar10(place: Path) -> None:
    files = {f"data_batch_{index}": 10 for index in range(1, 6)} | {"test_batch": 10}
    cifar(place / "cifar-10-batches-py", files, "labels", 10, ("batches.meta", "label_names"))


def cifar10(folder: Path) -> None:
    """Small images of ten classes."""
    _cifar10(folder / "data")


def cifar100(folder: Path) -> None:
    """Small images of a hundred classes."""
    files = {"train": 8, "test": 8}
    cifar(folder / "data" / "cifar-100-python", files, "fine_labels", 100, ("meta", "fine_label_names"))


def ddim(folder: Path) -> None:
    """Small images of ten classes, twice, and a small configuration."""
    for name in ("cifar10", "cifar10_test"):
        _cifar10(folder / "exp" / "datasets" / name)
    configuration = {
        "data": {"dataset": "CIFAR10", "image_size": 32, "channels": 3, "logit_transform": False}
        | {"uniform_dequantization": False, "gaussian_dequantization": False, "random_flip": True}
        | {"rescaled": True, "num_workers": 0},
        "model": {"type": "simple", "in_channels": 3, "out_ch": 3, "ch": 32, "ch_mult": [1, 2], "num_res_blocks": 1}
        | {"attn_resolutions": [16], "dropout": 0.1, "var_type": "fixedlarge", "ema_rate": 0.9999, "ema": True}
        | {"resamp_with_conv": True},
        "diffusion": {"beta_schedule": "linear", "beta_start": 0.0001, "beta_end": 0.02}
        | {"num_diffusion_timesteps": 100},
        "training": {"batch_size": 10, "n_epochs": 1, "n_iters": 5, "snapshot_freq": 3, "validation_freq": 2000},
        "sampling": {"batch_size": 4, "last_only": True},
        "optim": {"weight_decay": 0.0, "optimizer": "Adam", "lr": 0.0002, "beta1": 0.9, "amsgrad": False}
        | {"eps": 0.001, "grad_clip": 1.0},
    }
    (folder / "configs").mkdir(exist_ok=True)
    (folder / "configs" / "tiny.yml").write_text(json.dumps(configuration))  # JSON is YAML


def coco(folder: Path, size: Size = (96, 96), train: int = 4) -> None:
    """Images with boxes."""
    for part, count in (("train2017", train), ("val2017", 2)):
        for index in range(count):
            image(folder / "coco" / part / f"{index}.jpg", size)
        rows = [
            {"id": index, "file_name": f"{index}.jpg", "width": size[0], "height": size[1]} for index in range(count)
        ]
        boxes = [
            {"id": index + 1, "image_id": index, "category_id": 1 + index % 3, "bbox": [10, 10, 40, 30]}
            | {"area": 1200, "iscrowd": 0, "segmentation": [[10, 10, 50, 10, 50, 40, 10, 40]]}
            for index in range(count)
        ]
        place = folder / "coco" / "annotations"
        place.mkdir(exist_ok=True)
        document = {"images": rows, "annotations": boxes, "categories": [{"id": n, "name": f"{n}"} for n in (1, 2, 3)]}
        (place / f"instances_{part}.json").write_text(json.dumps(document))


def checkpoint(folder: Path, name: str = "stories15M") -> None:
    """Random weights of a model, the smallest that the program knows by default, and the file of a tokenizer."""
    import sys

    import torch

    sys.path.insert(0, str(folder))
    from model import Transformer

    place = folder / "checkpoints" / name
    place.mkdir(parents=True, exist_ok=True)
    torch.save({"model": Transformer.from_name(name).state_dict()}, place / "model.pth")
    (place / "tokenizer.model").write_text("")
