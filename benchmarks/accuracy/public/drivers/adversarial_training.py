"""Train a small classifier by several methods on pictures of noise for some steps."""

import sys
from pathlib import Path

import numpy as np
import torch
import yaml
from substitutes import here, run, vision, without

here()
without("timm", "advertorch", "foolbox", "cv2")
vision()
torch.manual_seed(0)
np.random.seed(0)
np.int = int  # an alias that NumPy had
import torchvision.datasets


class Pictures(torch.utils.data.Dataset):
    """Noise with labels."""

    def __init__(self, root: str, train: bool, transform: object, download: bool) -> None:
        self.data = np.random.randint(0, 255, (16, 32, 32, 3), dtype=np.uint8)
        self.targets = [int(label) for label in np.random.randint(0, 10, 16)]
        self.transform = transform

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[object, int]:
        return self.transform(torchvision.transforms.functional.to_pil_image(self.data[index])), self.targets[index]


torchvision.datasets.CIFAR10 = Pictures
import init_path  # noqa: F401  # the program finds its modules by it
from model import classifiers

classifiers.resnet.resnet18 = classifiers.wresnet.wrn_16_1
methods = {
    "standard": "standard/standard_cifar10_resnet18.yml",
    "trades": "trades/trades_cifar10_wrn3410.yml",
    "mart": "mart/mart_cifar10_wrn3410.yml",
    "ccg": "ccg/ccg_cifar10_resnet18.yml",
    "nature": "nature/nature_cifar10_resnet18.yml",
}


def options(file: str) -> dict[str, dict[str, object]]:
    """The options in a file of the program."""
    return yaml.load(Path("config", file).read_text(encoding="utf-8"), Loader=yaml.FullLoader)


for method, file in methods.items():
    # Some files lack options that the program reads since then.
    sizes = options(methods["standard"])
    sizes["TRAIN"] |= options(file)["TRAIN"] | {"epochs": 2, "arch": "wrn16_1", "save_ckp_freq": 1}
    sizes["TRAIN"].setdefault("trades_beta", 6.0)
    sizes["DATA"] |= {"workers": 0, "batch_size": 2}
    for part in ("TRAIN", "EVAL"):
        sizes["ADV"][part]["iters"] = 2
    sizes["ADV"] |= {"alpha": 0.01, "eps": 0.03, "epsilon": 0.03, "iters": 2, "max_value": 1.0, "min_value": 0.0}
    Path("small.yml").write_text(yaml.dump(sizes), encoding="utf-8")
    sys.argv = ["train.py", "-c", "small.yml", "--dataset", "cifar10", "--method", method, "--use_log"]
    run("train.py")
