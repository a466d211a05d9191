"""Loaders for training without workers, and loaders that need none."""

import cv2
import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset
from torch_geometric.loader import DataLoader as GraphLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms.functional import to_tensor


class Images(Dataset):
    def __init__(self, paths: list[str]):
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        return to_tensor(Image.open(self.paths[index]))


class Frames(Images):
    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(self.read(index))

    def read(self, index: int) -> np.ndarray:
        return cv2.imread(self.paths[index])


class Tokens(Dataset):
    def __init__(self, tokens: torch.Tensor):
        self.tokens = tokens

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.tokens[index : index + 128]


class Stream(IterableDataset):
    def __iter__(self):
        yield torch.randn(8)


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loader) -> None:
    for x in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()


def images(model: torch.nn.Module, optimizer: torch.optim.Optimizer, paths: list[str]) -> None:
    loader = DataLoader(Images(paths), 64, shuffle=True)  # error: TPF401
    train(model, optimizer, loader)


def frames(model: torch.nn.Module, optimizer: torch.optim.Optimizer, paths: list[str]) -> None:
    data = Frames(paths)
    train(model, optimizer, DataLoader(data, batch_size=64, pin_memory=True))  # error: TPF401


def folder(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    data = Subset(ImageFolder("images"), range(1000))
    train(model, optimizer, DataLoader(data, batch_size=64, pin_memory=True))  # error: TPF401


def tokens(model: torch.nn.Module, optimizer: torch.optim.Optimizer, tokens: torch.Tensor) -> None:
    train(model, optimizer, DataLoader(Tokens(tokens), batch_size=64))  # audit: TPF401


def graphs(model: torch.nn.Module, optimizer: torch.optim.Optimizer, data) -> None:
    train(model, optimizer, GraphLoader(data, batch_size=64, shuffle=True))  # audit: TPF401


def with_workers(model: torch.nn.Module, optimizer: torch.optim.Optimizer, paths: list[str], workers: int) -> None:
    train(model, optimizer, DataLoader(Images(paths), batch_size=64, num_workers=workers))


def as_it_was_meant(model: torch.nn.Module, optimizer: torch.optim.Optimizer, paths: list[str]) -> None:
    train(model, optimizer, DataLoader(Images(paths), batch_size=64, num_workers=0))


def with_options(model: torch.nn.Module, optimizer: torch.optim.Optimizer, paths: list[str], **options) -> None:
    train(model, optimizer, DataLoader(Images(paths), **options))


def in_memory(model: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    train(model, optimizer, DataLoader(TensorDataset(x), batch_size=64))


def of_a_list(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    train(model, optimizer, DataLoader([torch.randn(8) for _ in range(100)], batch_size=64))


def streamed(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    train(model, optimizer, DataLoader(Stream(), batch_size=64))


class OfLightning:
    """A file with such a class alone has no step of a training."""

    def setup(self, stage: str) -> None:
        self.data = ImageFolder("train")

    def train_dataloader(self) -> DataLoader:
        return DataLoader(self.data, batch_size=64, shuffle=True)  # error: TPF401
