"""Where items and batches go to the device."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

DEVICE = torch.device("cuda")


class Images(Dataset):
    def __init__(self, images: list[torch.Tensor], labels: list[int]):
        self.images, self.labels = images, labels

    def __getitem__(self, index: int):
        image = self.images[index].cuda()  # audit: TPF405
        label = torch.tensor(self.labels[index], device="cuda")  # audit: TPF405
        return image, label

    def __len__(self) -> int:
        return len(self.images)


def collate(batch: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(batch).to(DEVICE)  # audit: TPF405


def loader(data: Dataset) -> DataLoader:
    return DataLoader(data, batch_size=8, num_workers=4, collate_fn=collate)


class OnTheHost(Dataset):
    def __init__(self, images: list[torch.Tensor]):
        self.images = [image.cuda() for image in images]

    def __getitem__(self, index: int):
        return self.images[index].float().to("cpu"), torch.tensor(index)


class Network(nn.Module):
    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.zeros(3, device="cuda")


def batches(data: Dataset) -> list[torch.Tensor]:
    return [x.cuda() for x in DataLoader(data, num_workers=4)]


def plain_collate(batch: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(batch)


def plain(data: Dataset) -> DataLoader:
    return DataLoader(data, collate_fn=plain_collate, num_workers=2)


class Rows(Dataset):
    def __getitem__(self, index: int):
        return torch.zeros(3).to(torch.float16)


class Followers(Dataset):
    def __init__(self, base: torch.Tensor):
        self.base = base

    def __getitem__(self, index: int):
        return torch.ones(3).to(self.base)


class Preloaded(Dataset):
    def __init__(self, images: torch.Tensor, labels: torch.Tensor):
        self.images = images.cuda()  # audit: TPF405
        self.labels = labels.to(DEVICE)  # audit: TPF405
        self.weights = torch.ones(10, device="cuda")
        self.mean = images.mean()

    def __getitem__(self, index: int):
        return self.images[index] - self.mean, self.labels[index]


class PreloadedAlone(Dataset):
    def __init__(self, images: torch.Tensor):
        self.images = images.cuda()

    def __getitem__(self, index: int):
        return self.images[index]


def preloaded(images: torch.Tensor, labels: torch.Tensor) -> list[DataLoader]:
    alone = DataLoader(PreloadedAlone(images), batch_size=8)
    return [DataLoader(Preloaded(images, labels), batch_size=8, num_workers=4), alone]


class Waves(Dataset):
    def __init__(self, paths: list[str]):
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int):
        return torch.load(self.paths[index]).cuda()  # audit: TPF405


class WavesOnTheCpu(Waves):
    def __getitem__(self, index: int):
        return torch.load(self.paths[index])


class Collator:
    def __init__(self, device: torch.device):
        self.device = device

    def __call__(self, rows: list[torch.Tensor]) -> torch.Tensor:
        return pad(rows).to("cuda")  # audit: TPF405

    def on_cpu(self, rows: list[torch.Tensor]) -> torch.Tensor:
        return pad(rows)


def pad(rows: list[torch.Tensor]) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(rows)


class Mover:
    """No loader calls it."""

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        return batch.to("cuda")


def collated(items: list[torch.Tensor], model: torch.nn.Module) -> None:
    DataLoader(items, batch_size=8, num_workers=4, collate_fn=Collator(torch.device("cuda")).on_cpu)
    move = Mover()
    for batch in DataLoader(items, batch_size=8, num_workers=4, collate_fn=Collator(torch.device("cuda"))):
        model(move(batch))
