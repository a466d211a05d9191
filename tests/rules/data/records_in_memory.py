"""Data sets of Python objects that workers read, and of arrays."""

import json
import pickle
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Lines(Dataset):
    def __init__(self, path: str):
        with open(path) as file:
            self.records = [json.loads(line) for line in file]  # audit: TPF409

    def __getitem__(self, i: int):
        return torch.tensor(self.records[i]["ids"])


class Whole(Dataset):
    def __init__(self, path: str):
        with open(path, "rb") as file:
            entries = pickle.load(file)
        self.entries = entries  # audit: TPF409

    def __getitem__(self, i: int):
        return self.entries[i]


class Texts(Dataset):
    def __init__(self, path: str):
        self.texts = open(path).read().splitlines()  # audit: TPF409

    def __getitem__(self, i: int):
        text = self.texts[i]
        return text.strip()


def build(path: str) -> DataLoader:
    return DataLoader(Lines(path), 64, num_workers=16, pin_memory=True)


# Look-alikes


class Array(Dataset):
    def __init__(self, path: str):
        self.rows = np.load(path, mmap_mode="r")

    def __getitem__(self, i: int):
        return torch.from_numpy(self.rows[i].copy())


class Joined(Dataset):
    def __init__(self, path: str):
        with open(path) as file:
            self.rows = np.array([json.loads(line)["x"] for line in file])

    def __getitem__(self, i: int):
        return self.rows[i]


class Settings(Dataset):
    def __init__(self, path: str, rows: torch.Tensor):
        with open(path) as file:
            self.settings = json.load(file)
        self.rows = rows

    def __getitem__(self, i: int):
        return self.rows[i] * self.settings["scale"]


class NoDataset:
    def __init__(self, path: str):
        with open(path) as file:
            self.records = [json.loads(line) for line in file]

    def __getitem__(self, i: int):
        return self.records[i]


class Seen(Dataset):
    def __init__(self, rows: torch.Tensor):
        self.rows, self.seen = rows, []

    def __getitem__(self, i: int):
        self.seen.append(i)
        return self.rows[i]


class Captions(Dataset):
    def __init__(self, path: Path):
        self.items = json.loads(path.read_text())["annotations"]  # audit: TPF409

    def __getitem__(self, index: int):
        return self.items[index]
