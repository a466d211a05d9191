"""Random data in realistic sizes, as each program expects to find it; with `small`, sizes for a CPU.

Each function gets the folder in which the program runs.
"""

from __future__ import annotations

import itertools
import json
import os
import pickle
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.tracer.public import data as tiny


def sized(make: Callable[..., None], small: Sequence[object], large: Sequence[object]) -> Callable[[Path, bool], None]:
    """Data of the other module, with these arguments."""
    return lambda folder, is_small: make(folder, *(small if is_small else large))


coco = sized(tiny.coco, ((96, 96), 8), ((640, 480), 64))
masks = sized(tiny.masks, ((32, 32), 16), ((256, 256), 96))
mnist = sized(tiny.mnist, (64,), (1280,))
digits = sized(tiny.mnist, (60_000, "data"), (60_000, "data"))
tokens = sized(tiny.tokens, (4096,), (1 << 20,))
citations = sized(tiny.citations, (16, 5429), (200, 5429))
checkpoint = sized(tiny.checkpoint, ("stories15M",), ("stories110M",))
sentences = sized(tiny.sentences, (), (10_000, (25_600, 1_024), (8, 24)))


def cifar100(folder: Path, small: bool) -> None:
    """Small images of a hundred classes."""
    count = 64 if small else 512
    place = folder / "data" / "cifar-100-python"
    tiny.cifar(place, {"train": count, "test": 8}, "fine_labels", 100, ("meta", "fine_label_names"))


def ddim(folder: Path, small: bool) -> None:
    """Small images of ten classes, twice, and a configuration: that of the authors for CIFAR-10 by default."""
    for name in ("cifar10", "cifar10_test"):
        files = {f"data_batch_{index}": 20 if small else 128 for index in range(1, 6)} | {"test_batch": 10}
        place = folder / "exp" / "datasets" / name / "cifar-10-batches-py"
        tiny.cifar(place, files, "labels", 10, ("batches.meta", "label_names"))
    width, multiples, blocks, batch = (32, [1, 2], 1, 4) if small else (128, [1, 2, 2, 2], 2, 32)
    configuration = {
        "data": {"dataset": "CIFAR10", "image_size": 32, "channels": 3, "logit_transform": False}
        | {"uniform_dequantization": False, "gaussian_dequantization": False, "random_flip": True}
        | {"rescaled": True, "num_workers": 0 if small else 4},
        "model": {"type": "simple", "in_channels": 3, "out_ch": 3, "ch": width, "ch_mult": multiples}
        | {"num_res_blocks": blocks, "attn_resolutions": [16], "dropout": 0.1, "var_type": "fixedlarge"}
        | {"ema_rate": 0.9999, "ema": True, "resamp_with_conv": True},
        "diffusion": {"beta_schedule": "linear", "beta_start": 0.0001, "beta_end": 0.02}
        | {"num_diffusion_timesteps": 1000},
        "training": {"batch_size": batch, "n_epochs": 10000, "n_iters": 5000000}
        | {"snapshot_freq": 5000, "validation_freq": 2000},
        "sampling": {"batch_size": 64, "last_only": True},
        "optim": {"weight_decay": 0.0, "optimizer": "Adam", "lr": 0.0002, "beta1": 0.9, "amsgrad": False}
        | {"eps": 0.00000001, "grad_clip": 1.0},
    }
    (folder / "configs").mkdir(exist_ok=True)
    # JSON is YAML, but for numbers such as 1e-08.
    text = json.dumps(configuration).replace("1e-08", "1.0e-08")
    (folder / "configs" / "perflint.yml").write_text(text)


def words(folder: Path, small: bool) -> None:
    """Texts of random words."""
    known = [f"word{index}" for index in range(50 if small else 10_000)]
    for part in ("train", "valid", "test"):
        path = folder / "data" / "tiny" / f"{part}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = 60 if small else 6000 if part == "train" else 300
        path.write_text("".join(f"{' '.join(random.choices(known, k=15))}\n" for _ in range(lines)))


def imagenet(folder: Path, small: bool) -> None:
    """Images to evaluate on, each under several names, and some to train on."""
    size, images, names = ((64, 64), 12, 2) if small else ((256, 256), 64, 60)
    for index in range(images):
        first = folder / "imagenet" / "val" / f"class{index % 2}" / f"{index}.jpg"
        tiny.image(first, size)
        for copy in range(1, names):
            os.link(first, first.with_name(f"{index}-{copy}.jpg"))
    for index in range(4):
        tiny.image(folder / "imagenet" / "train" / f"class{index % 2}" / f"{index}.jpg", size)


def supcontrast(folder: Path, small: bool) -> None:
    """Small images of ten classes; all 50,000 that the data set has."""
    _cifar10(folder / "datasets", small)


def cifar10(folder: Path, small: bool) -> None:
    """The same, in another place."""
    _cifar10(folder / "data", small)


def _cifar10(folder: Path, small: bool) -> None:
    files = {f"data_batch_{index}": 20 if small else 10_000 for index in range(1, 6)} | {"test_batch": 100}
    tiny.cifar(folder / "cifar-10-batches-py", files, "labels", 10, ("batches.meta", "label_names"))


def plain_images(folder: Path, small: bool) -> None:
    """Images without classes."""
    size, count, names = ((16, 16), 104, 1) if small else ((64, 64), 64, 64)
    _images([folder / "images"], size, count, names, "png")


def classes(folder: Path, small: bool) -> None:
    """Photographs of two classes."""
    size, count, names = ((64, 64), 24, 1) if small else ((256, 256), 64, 64)
    _images([folder / "images" / f"class{index}" for index in range(2)], size, count, names, "jpg")


def sampled_images(folder: Path, small: bool) -> None:
    """Images of two classes, and the folders that the program writes to."""
    size, count, names = ((16, 16), 24, 1) if small else ((64, 64), 128, 30)
    _images([folder / "images" / f"class{index}" for index in range(2)], size, count, names, "png")
    for name in ("sample", "checkpoint"):
        (folder / name).mkdir(exist_ok=True)


def _images(folders: list[Path], size: tuple[int, int], count: int, names: int, kind: str) -> None:
    """Images in these folders by turns, each under several names."""
    for index in range(count):
        first = folders[index % len(folders)] / f"{index}.{kind}"
        tiny.image(first, size)
        for copy in range(1, names):
            os.link(first, first.with_name(f"{index}-{copy}.{kind}"))


def points(folder: Path, small: bool) -> None:
    """Clouds of points of three classes."""
    place = folder / "data" / "cls"
    place.mkdir(parents=True, exist_ok=True)
    size, counts = (64, (48, 8)) if small else (10_000, (1280, 64))
    for part, count in zip(("train", "test"), counts, strict=True):
        np.save(place / f"data_{part}.npy", np.random.randn(count, size, 3).astype(np.float32))
        np.save(place / f"label_{part}.npy", np.random.randint(0, 3, count))


def digits_within(folder: Path, small: bool) -> None:
    """Digits in a folder of their own; all 60,000 that the data set has."""
    tiny.mnist(folder, 60_000, "data/mnist")


def small_digits(folder: Path, small: bool) -> None:
    """Images of digits, and a configuration: that of the authors."""
    from PIL import Image

    for index in range(20):
        path = folder / "data" / "mnist" / "train" / "images" / str(index % 10) / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.random.randint(0, 256, (28, 28), dtype=np.uint8)).save(path)
        for copy in range(1, 2 if small else 300):
            os.link(path, path.with_name(f"{index}-{copy}.png"))
    (folder / "mnist").mkdir(exist_ok=True)
    text = (folder / "config" / "mnist.yaml").read_text()
    for line in ("[ 128, 256, 256, 256]", "[ 256, 256]") if small else ():
        text = text.replace(line, line.replace("128", "32").replace("256", "32"))
    text = text.replace("ldm_batch_size: 64", "ldm_batch_size: 4") if small else text
    (folder / "config" / "perflint.yaml").write_text(text)


def models(folder: Path, small: bool) -> None:
    """The folder that the program writes to."""
    (folder / "model").mkdir(exist_ok=True)


def breasts(folder: Path, small: bool) -> None:
    """X-rays of breasts from two sides, with findings and without, for two parts; the second one needs five of each."""
    patients, size = (16, (32, 32)) if small else (512, (128, 128))
    for part, count, images in (("train", patients, 1), ("val", 2, 5)):
        for index in range(count):
            kinds = {"pos": ("Mass", "Suspicious_Calcification")[index % 2], "neg": "Negative"}
            for (kind, name), view, number in itertools.product(kinds.items(), ("CC", "MLO"), range(images)):
                tiny.image(folder / part / name / f"p{index}_L_{view}_{kind}_{number}.png", size)


def sounds(folder: Path, small: bool) -> None:
    """Recordings of noise, half a minute long."""
    from scipy.io import wavfile

    (folder / "audio").mkdir()
    for index in range(1 if small else 40):
        samples = np.random.randint(-20_000, 20_000, 480_000, dtype=np.int16)
        wavfile.write(folder / "audio" / f"{index}.wav", 16_000, samples)


def street(folder: Path, small: bool) -> None:
    """Views of a street from above, each under several names, with cars and the calibration of the cameras."""
    place, views = folder / "datasets" / "Kitti", folder / "outputs" / "datasets_cache" / "Kitti" / "bev"
    for path in (place / "training" / "label_2", place / "training" / "calib", views):
        path.mkdir(parents=True)
    camera = "1 0 0 0 0 1 0 0 0 0 1 0"
    lines = [*[f"P{index}: {camera}" for index in range(4)], "R0: 1 0 0 0 1 0 0 0 1", "V: 0 -1 0 0 0 0 -1 0 1 0 0 0"]
    count = 24 if small else 960
    for index in range(count):
        (place / "training" / "calib" / f"{index:06}.txt").write_text("\n".join(lines) + "\n")
        cars = [
            f"Car 0 0 0 100 100 200 200 1.5 1.7 4.2 {random.uniform(-35, 35):.2f} 1.6 {random.uniform(2, 78):.2f} 1.2\n"
            for _ in range(random.randint(1, 12))
        ]
        (place / "training" / "label_2" / f"{index:06}.txt").write_text("".join(cars))
        view = views / f"{index:06}.npy"
        if index < 24:
            np.save(view, np.random.rand(3, 800, 800).astype(np.float16))
        else:
            # Not a second name of the file: a copy of the project would be a thousand files.
            view.symlink_to(f"{index % 24:06}.npy")
    (place / "train.txt").write_text("".join(f"{index:06}\n" for index in range(count)))


def reviews(folder: Path, small: bool) -> None:
    """Sentences of random words, of two classes; as many as the data set has."""
    known = [f"word{index}" for index in range(18_000)]
    place = folder / "rt-polaritydata"
    place.mkdir()
    for name in ("neg", "pos"):
        lines = [" ".join(random.choices(known, k=random.randint(5, 35))) for _ in range(200 if small else 5_331)]
        (place / f"rt-polarity.{name}").write_text("\n".join(lines) + "\n")


def photographs(folder: Path, small: bool) -> None:
    """Photographs, and their list, in which each is several times."""
    count, times = (4, 2) if small else (64, 32)
    paths = [folder / "datasets" / f"{index}.jpg" for index in range(count)]
    for path in paths:
        tiny.image(path, (640, 480))
    (folder / "train_lines.txt").write_text("".join(f"datasets/{path.name}\n" for path in paths) * times)
    (folder / "results" / "train_out").mkdir(parents=True, exist_ok=True)


def pairs(folder: Path, small: bool) -> None:
    """Small images of ten classes, in another place."""
    _cifar10(folder / "dataset", small)


def listed_photographs(folder: Path, small: bool) -> None:
    """Photographs of four classes, and lists of their names and classes."""
    count = 8 if small else 64
    for index in range(count):
        tiny.image(folder / "images" / f"{index}.jpg", (64, 48) if small else (400, 300))
    for part, lines in (("train", 64 if small else 2_048), ("valid", 8 if small else 64)):
        text = "".join(f"{index % count}.jpg {index % 4}\n" for index in range(lines))
        (folder / f"{part}.txt").write_text(text)


def horses(folder: Path, small: bool) -> None:
    """Photographs in two folders, without pairs."""
    size, count, names = ((64, 64), 24, 1) if small else ((256, 256), 32, 32)
    _images([folder / "data" / "horse2zebra" / "train" / name for name in "AB"], size, count * 2, names, "jpg")


def masked_digits(folder: Path, small: bool) -> None:
    """Digits, in the folder in which a data set of another name looks for them."""
    tiny.mnist(folder, 256 if small else 60_000, "data")
    place = folder / "data" / "MNIST"
    (place / "raw").rename(folder / "data" / "raw")
    (place / "MNISTMaskDataset").mkdir()
    (folder / "data" / "raw").rename(place / "MNISTMaskDataset" / "raw")


def microbes(folder: Path, small: bool) -> None:
    """Samples of microbes and how many of each there are, and the embeddings of their kinds."""
    kinds, count = 1_000, 60 if small else 6_000
    np.save(folder / "embeddings.npy", np.random.randn(kinds, 100))
    each = np.stack([np.random.randint(0, kinds, (count, 20)), np.random.randint(0, 300, (count, 20))], axis=2)
    np.save(folder / "samples.npy", each)
    (folder / "output").mkdir()


def skeletons(folder: Path, small: bool) -> None:
    """Moving skeletons of two people, and a configuration: that of the authors, with other paths."""
    parts = {"train": 64, "val": 8} if small else {"train": 512, "val": 64}
    text = (folder / "config" / "nturgbd-cross-view" / "train_spatial.yaml").read_text()
    for part, count in parts.items():
        np.save(folder / f"{part}_data_joint.npy", np.random.randn(count, 3, 300, 25, 2).astype(np.float32))
        (folder / f"{part}_data_bone.npy").symlink_to(f"{part}_data_joint.npy")
        rows = [f"{index}" for index in range(count)], [index % 60 for index in range(count)]
        (folder / f"{part}_label.pkl").write_bytes(pickle.dumps(rows))
    text = text.replace("/content/xview_new/", "").replace("/gdrive/MyDrive/ureca-new/", "trained")
    text = text.replace("num_epoch: 1\n", "num_epoch: 120\n").replace("label.pkl\n\n", "label.pkl\n  debug: False\n\n")
    (folder / "config" / "perflint.yaml").write_text(text)


def documents(folder: Path, small: bool) -> None:
    """Texts of random words of four classes, and the words that a tokenizer knows."""
    known = [f"word{index}" for index in range(200 if small else 20_000)]
    (folder / "bert").mkdir()
    (folder / "bert" / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *known]))
    (folder / "bert" / "config.json").write_text('{"model_type": "bert"}')
    for part, lines in (("train", 32 if small else 8_000), ("valid", 8 if small else 200)):
        text = (f"{index % 4},{' '.join(random.choices(known, k=random.randint(20, 150)))}\n" for index in range(lines))
        (folder / f"{part}.csv").write_text("".join(text))
