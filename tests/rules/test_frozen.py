"""TPF308 on whole files: an optimizer that gets one layer, with nothing frozen."""

from __future__ import annotations

import pytest

from perflint.rules.model.frozen_params_with_grad import FrozenParamsWithGrad
from tests.rules.harness import lint

HEAD = """\
import torch
from torch import nn
from torchvision import models

model = models.resnet50()
model.fc = nn.Linear(2048, 10)
optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.1)


def train(loader):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def found(text: str) -> list[int]:
    return [finding.span.line for finding in lint(text, [FrozenParamsWithGrad], "audit")]


def test_an_optimizer_of_one_new_layer() -> None:
    assert found(HEAD) == [7]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("model.fc.parameters()", "model.parameters()"),
        ("model.fc = nn", "model.requires_grad_(False)\nmodel.fc = nn"),
        ("model.fc = nn.Linear(2048, 10)\n", ""),
        ("model(x)", "model(x.detach())"),
        (
            "model.fc.parameters(), lr=0.1)",
            "model.fc.parameters(), lr=0.1)\nbody = torch.optim.SGD(model.layer1.parameters())",
        ),
        ("        loss.backward()\n", ""),
        ("model(x)", "other(x)"),
    ],
)
def test_other_files_are_silent(old: str, new: str) -> None:
    changed = HEAD.replace(old, new)
    assert changed != HEAD and not found(changed)
