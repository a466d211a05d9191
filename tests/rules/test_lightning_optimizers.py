"""Optimizers that Lightning asks for, in files that name no GPU."""

from __future__ import annotations

import pytest

from tests.engine.test_judgement import audited

TEXT = """
{imports}
from torch.optim import {optimizer}


class Net({base}):
    def {method}(self):
        return {optimizer}({parameters}, lr=1e-3{more})
"""
GIVEN = {
    "imports": "import lightning as L",
    "optimizer": "AdamW",
    "base": "L.LightningModule",
    "method": "configure_optimizers",
    "parameters": "self.parameters()",
    "more": "",
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, ["warning"]),
        ({"imports": "import pytorch_lightning as pl", "base": "pl.LightningModule"}, ["warning"]),
        ({"imports": "from pytorch_lightning import LightningModule", "base": "LightningModule"}, ["warning"]),
        ({"optimizer": "SGD"}, ["info"]),
        ({"more": ", fused=True"}, []),
        ({"parameters": "[self.temperature]"}, []),
        ({"method": "make"}, []),
        ({"imports": "from torch import nn", "base": "nn.Module"}, []),
        ({"optimizer": "Adadelta"}, []),
    ],
)
def test_optimizers_of_lightning_run_on_a_gpu(changed: dict[str, str], expected: list[str]) -> None:
    found = [each for each in audited(TEXT.format(**{**GIVEN, **changed})) if each.code == "TPF601"]
    assert [each.severity.value for each in found] == expected
    assert all(each.fix is None for each in found)


def test_a_base_class_of_the_file_counts() -> None:
    text = TEXT.format(**{**GIVEN, "base": "Base"}).replace(
        "class Net", "class Base(L.LightningModule):\n    pass\n\n\nclass Net"
    )
    assert [each.code for each in audited(text)] == ["TPF601"]
