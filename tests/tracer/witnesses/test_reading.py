"""Reads, metrics and settings of trainers: what a run says of the findings."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.findings import Ruling
from tests.tracer.witnesses.running import traced, verdicts

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
YES, NO, OPEN = Ruling.CONFIRMED, Ruling.REFUTED, Ruling.UNDECIDED
PACKAGES = {
    "torchmetrics/__init__.py": "class Accuracy:\n    def __call__(self, x, y): return x.sum()\n",
    "wandb/__init__.py": "class Histogram:\n    def __init__(self, data): self.data = data.cpu()\n",
    "transformers/__init__.py": "from transformers.trainer import Trainer\nfrom transformers.training_args import *\n",
    "transformers/training_args.py": """
class TrainingArguments:
    def __init__(self, output_dir, logging_steps=500):
        self.logging_steps = logging_steps
""",
    "transformers/trainer.py": """
class Trainer:
    def __init__(self, model, args, optimizer, batches):
        self.model, self.args, self.optimizer, self.batches = model, args, optimizer, batches

    def train(self):
        for step, x in enumerate(self.batches):
            loss = self.model(x).sum()
            loss.backward()
            self.optimizer.step()
            if not (step + 1) % self.args.logging_steps:
                loss.item()
""",
    "lightning/__init__.py": "from lightning.pytorch import LightningModule, Trainer\n",
    "lightning/pytorch/__init__.py": """
import torch

class LightningModule(torch.nn.Module):
    logged = None

    def log(self, name, value, prog_bar=False):
        self.logged = value if prog_bar else None

class Trainer:
    def fit(self, model, batches, optimizer, shows=True):
        for index, x in enumerate(batches):
            model.training_step(x, index).backward()
            optimizer.step()
            if model.logged is not None and shows:
                model.logged.item()
""",
}
PROGRAM = """
import torchmetrics
import wandb

def reads(module, inputs, output):
    output.sum().item()

def looks(module, inputs, output):
    if module.debug:
        output.sum().item()

def train(model, optimizer, loader, gradients):
    model.debug = False
    model.register_forward_hook(reads)
    model.register_forward_hook(looks)
    accuracy = torchmetrics.Accuracy()
    for step, x in enumerate(loader):
        y = model(x)
        y.sum().backward()
        optimizer.step()
        accuracy(y, x)
        there = wandb.Histogram(y)
        here = wandb.Histogram(gradients)
        if step * 2 != 4:
            continue
        accuracy.compute()

torchmetrics.Accuracy.compute = lambda self: None
model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train(model, optimizer, [torch.ones(2, 4, device="cuda")] * 5, torch.ones(4))
"""
TRAINER = """
from transformers import Trainer, TrainingArguments

model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [torch.ones(2, 4, device="cuda")] * 4
args = TrainingArguments("out", logging_steps=1)
args.logging_steps = {every}
Trainer(model, args, optimizer, batches).train()
"""
LIGHTNING = """
import lightning as L

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)

    def training_step(self, batch, index):
        loss = self.net(batch).mean()
        self.log("loss", loss, prog_bar=True)
        return loss

model = Model().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
L.Trainer().fit(model, [torch.ones(2, 4, device="cuda")] * 4, optimizer, {shows})
"""


def installed(folder: Path) -> Path:
    """A folder whose programs find small stand-ins for some packages where packages are installed."""
    for name, text in PACKAGES.items():
        path = folder / "site-packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def with_packages(program: str) -> str:
    return "import sys\nsys.path.insert(0, 'site-packages')\n" + program


def test_hooks_metrics_and_histograms(tmp_path: Path) -> None:
    traced(installed(tmp_path), with_packages(PROGRAM))
    assert verdicts(tmp_path, "TPF961") == {
        "model.register_forward_hook(reads)": YES,
        "model.register_forward_hook(looks)": NO,
    }
    assert verdicts(tmp_path, "TPF131") == {"accuracy(y, x)": YES, "accuracy.compute()": NO}
    assert verdicts(tmp_path, "TPF605") == {
        "there = wandb.Histogram(y)": YES,
        "here = wandb.Histogram(gradients)": NO,
    }


SYNCHRONIZED = """
from unittest.mock import patch

def train(model, optimizer):
    for step in range(4):
        model(torch.ones(2, 4, device="cuda")).sum().backward()
        optimizer.step()
        torch.cuda.synchronize()
        with patch("torch.cuda.synchronize"):
            torch.cuda.synchronize(0)

model = nn.Linear(4, 4).cuda()
train(model, torch.optim.SGD(model.parameters(), lr=0.1))
"""


def test_a_synchronization_that_the_program_replaced_is_undecided(tmp_path: Path) -> None:
    traced(tmp_path, SYNCHRONIZED)
    assert verdicts(tmp_path, "TPF122") == {"torch.cuda.synchronize()": YES, "torch.cuda.synchronize(0)": OPEN}


def test_trainers(tmp_path: Path) -> None:
    line = 'args = TrainingArguments("out", logging_steps=1)'
    for every, ruling in ((1, YES), (4, NO)):
        traced(installed(tmp_path), with_packages(TRAINER.format(every=every)))
        assert verdicts(tmp_path, "TPF942")[line] is ruling
    logs = 'self.log("loss", loss, prog_bar=True)'
    for shows, ruling in ((True, YES), (False, NO)):
        traced(installed(tmp_path), with_packages(LIGHTNING.format(shows=shows)))
        assert verdicts(tmp_path, "TPF941")[logs] is ruling
