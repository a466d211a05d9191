"""Train small networks on digits of noise for some steps, and evaluate them."""

import sys

import torch
from substitutes import without

sys.path.insert(0, "src")
without("torchvision", "onnx", "onnxruntime", "fastapi", "uvicorn")
import torchvision.datasets


class Digits(torch.utils.data.Dataset):
    """Noise with labels."""

    def __init__(self, folder: object, train: bool = True, **options: object) -> None:
        self.count = 128
        self.targets = torch.arange(self.count) % 10

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        generator = torch.Generator().manual_seed(index)
        return torch.rand(1, 28, 28, generator=generator) * 2 - 1, index % 10


torchvision.datasets.MNIST = Digits
from mnist_wgan import cli, data

data.MNISTDataModule.__init__.__defaults__ = ("data", 8, 0, 24, 112)
sizes = {"epochs": 2, "batch-size": 8, "workers": 0, "latent-dim": 8, "base-channels": 8, "critic-steps": 2}
sizes |= {"limit-train-batches": 6, "precision": "32-true"}
sys.argv = ["mnist-wgan-train", *(word for name, value in sizes.items() for word in (f"--{name}", str(value)))]
cli.train()
