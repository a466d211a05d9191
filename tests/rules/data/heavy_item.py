"""What data sets do for each item."""

import pickle

import h5py
import numpy as np
import pandas as pd
import torch
from torch.utils.data import Dataset
from transformers import AutoTokenizer


class Signals(Dataset):
    def __init__(self, path: str):
        self.path = path

    def __getitem__(self, index: int):
        with h5py.File(self.path) as file:  # audit: TPF406
            return torch.from_numpy(file["signals"][index])


class Rows(Dataset):
    def __getitem__(self, index: int):
        table = pd.read_csv("rows.csv")  # error: TPF406
        tokenizer = AutoTokenizer.from_pretrained("gpt2")  # error: TPF406
        return tokenizer(table.iloc[index].text)


class Weighted(Dataset):
    def __getitem__(self, index: int):
        weights = torch.load("weights.pt")  # error: TPF406
        return weights[index]


class OneFileEach(Dataset):
    def __init__(self, paths: list[str]):
        self.paths = paths

    def __getitem__(self, index: int):
        path = self.paths[index]
        name = path.replace(".npy", ".pt")
        with open(path, "rb") as file:
            meta = pickle.load(file)
        return np.load(path), torch.load(name), meta


class Opened(Dataset):
    def __init__(self, path: str):
        self.path, self.file = path, None

    def __getitem__(self, index: int):
        if self.file is None:
            self.file = h5py.File(self.path)
        return self.file["signals"][index]


class ReadOnce(Dataset):
    def __init__(self, path: str):
        self.table = pd.read_csv(path)
        self.tokenizer = AutoTokenizer.from_pretrained("gpt2")

    def __getitem__(self, index: int):
        return self.tokenizer(self.table.iloc[index].text)


class NoDataset:
    def __getitem__(self, index: int):
        return torch.load("weights.pt")[index]


def table(path: str):
    return pd.read_csv(path)


class Mapped(Dataset):
    def __getitem__(self, index: int):
        rows = np.load("rows.npy", mmap_mode="r")  # audit: TPF406
        return torch.from_numpy(rows[index])


class Collected(Dataset):
    def __getitem__(self, index: int):
        found = {}
        found["table"] = pd.read_csv("rows.csv")  # error: TPF406
        return found


def volume(path: str, key: str):
    with h5py.File(path, "r") as file:  # audit: TPF406
        return file[key][()]


class Volumes(Dataset):
    """What it reads depends on the item, and the archive does not."""

    def __init__(self, path: str, keys: list[str]):
        self.path, self.keys = path, keys

    def __getitem__(self, index: int):
        return torch.from_numpy(volume(self.path, self.keys[index]))


def one_of_many(path: str):
    with h5py.File(path, "r") as file:
        return file["data"][()]


class ManyVolumes(Dataset):
    def __init__(self, paths: list[str]):
        self.paths = paths

    def __getitem__(self, index: int):
        return torch.from_numpy(one_of_many(self.paths[index]))


class OpenedOnce(Dataset):
    """The method opens it, at the first item."""

    def __init__(self, path: str):
        self.path, self.file = path, None

    def opened(self):
        return h5py.File(self.path, "r")

    def __getitem__(self, index: int):
        if self.file is None:
            self.file = self.opened()
        return torch.from_numpy(self.file["data"][index])
