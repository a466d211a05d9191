"""Loaders of Lightning modules, whose files call no `backward`."""

from __future__ import annotations

import pytest

from tests.engine.test_judgement import audited

TEXT = """
import lightning as L
import torch
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder


class Net(L.LightningModule):
    def __init__(self, folder: str):
        super().__init__()
        self.net, self.images = torch.nn.Linear(8, 1), ImageFolder(folder)

    def {method}(self, batch, index):
        return self.net(batch).mean()

    def {purpose}_dataloader(self):
        return DataLoader(self.images, batch_size=64{more})
"""


@pytest.mark.parametrize(
    ("method", "purpose", "more", "expected"),
    [
        ("training_step", "train", "", ["warning"]),
        ("training_step", "train", ", num_workers=8", []),
        ("predict_step", "predict", "", []),
    ],
)
def test_loaders_for_training_without_workers(method: str, purpose: str, more: str, expected: list[str]) -> None:
    found = [each for each in audited(TEXT.format(method=method, purpose=purpose, more=more)) if each.code == "TPF401"]
    assert [each.severity.value for each in found] == expected
