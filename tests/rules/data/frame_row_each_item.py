"""Items from tables of pandas, and from arrays."""

import pandas as pd
import torch
from PIL import Image
from torch.utils.data import Dataset


class Rows(Dataset):
    def __init__(self, path: str):
        self.table = pd.read_csv(path)

    def __getitem__(self, i: int):
        row = self.table.iloc[i]  # audit: TPF408
        return torch.tensor(row.values[:-1].astype("float32")), int(row.values[-1])


class Labels(Dataset):
    def __init__(self, table: pd.DataFrame):
        self.table = table

    def __getitem__(self, i):
        at = i % 10
        return float(self.table.loc[at, "x"]), self.table.iloc[i, 1]  # audit: TPF408


class Batches(Dataset):
    def __init__(self, table: pd.DataFrame):
        self.table = table

    def __getitems__(self, indices: list[int]):
        return [self.table["x"].iloc[each] for each in indices]  # audit: TPF408


# Look-alikes


class Arrays(Dataset):
    def __init__(self, path: str):
        table = pd.read_csv(path)
        self.x = torch.from_numpy(table.iloc[:, :-1].to_numpy("float32"))

    def __getitem__(self, i: int):
        return self.x[i]


class Images(Dataset):
    def __init__(self, path: str):
        self.table = pd.read_csv(path)

    def __getitem__(self, i: int):
        return Image.open(self.table.iloc[i]["file"])


class Fixed(Dataset):
    def __init__(self, path: str):
        self.table = pd.read_csv(path)
        self.rows = self.table.to_numpy()

    def __getitem__(self, i: int):
        return self.rows[i] - self.table.iloc[0]


class NoDataset:
    def __init__(self, path: str):
        self.table = pd.read_csv(path)

    def __getitem__(self, i: int):
        return self.table.iloc[i]


def shown(table: pd.DataFrame) -> None:
    for i in range(3):
        print(table.iloc[i])
