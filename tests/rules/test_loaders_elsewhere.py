"""Loaders whose data sets and training loops lie in other files (TPF401)."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Settings
from perflint.engine.active import active_rules
from perflint.engine.files import check_files

DATA = """from PIL import Image
from torch.utils.data import DataLoader, Dataset

class Base(Dataset):
    def __getitem__(self, index):
        return self.load(self.paths[index])

class Photos(Base):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def load(self, path):
        return {load}

def loader(paths):
    return DataLoader(Photos(paths), batch_size=64, shuffle=True)
"""
ENGINE = """class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader

    def run(self):
        train(self.model, self.loader)

def train(model, loader):
    for x in loader:
        step(model, x)

def step(model, x):
    model(x.cuda()).sum().backward()
"""
MAIN = """import torch
from torch.utils.data import DataLoader
import data
import engine

def main(paths, model: torch.nn.Module):
    {}

main(["a"], torch.nn.Linear(3, 4))
"""
MADE = "loader = DataLoader(data.Photos(paths), batch_size=64)\n    "


def found(folder: Path, main: str, load: str = "Image.open(path)") -> list[str]:
    for name, text in {"data.py": DATA.format(load=load), "engine.py": ENGINE, "main.py": MAIN.format(main)}.items():
        (folder / name).write_text(text)
    settings = Settings()
    reports = check_files([str(folder / "data.py"), str(folder / "main.py")], active_rules(settings), settings)
    return [
        f"{Path(source.path).name}:{each.span.line}"
        for source, report in reports
        for each in report.findings
        if each.code == "TPF401"
    ]


@pytest.mark.parametrize(
    ("main", "places"),
    [
        (f"{MADE}engine.train(model, loader)", ["main.py:7"]),
        (f"{MADE}engine.Trainer(model, loader=loader).run()", ["main.py:7"]),
        ("engine.Trainer(model, DataLoader(data.Photos(paths))).run()", ["main.py:7"]),
        ("for x in data.loader(paths):\n        model(x.cuda()).sum().backward()", ["data.py:19"]),
        (f"{MADE}for x in loader:\n        engine.step(model, x)", ["main.py:7"]),
        (f"{MADE}for x in loader:\n        print(x)", []),
    ],
    ids=["function", "class", "at once", "importer", "batches", "no training"],
)
def test_a_loader_trains_where_another_file_goes_over_it(main: str, places: list[str], tmp_path: Path) -> None:
    assert found(tmp_path, main) == places


def test_a_data_set_of_another_file_may_be_in_memory(tmp_path: Path) -> None:
    assert found(tmp_path, f"{MADE}engine.train(model, loader)", load="self.cache[path]") == []
