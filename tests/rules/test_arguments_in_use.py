"""Arguments that other code of the project, or another argument, relies on."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Confidence, Finding
from perflint.rules.base import Rule
from perflint.rules.model.bias_before_norm import BiasBeforeNorm
from perflint.rules.model.needless_retain_graph import NeedlessRetainGraph
from perflint.rules.model.unused_attention_weights import UnusedAttentionWeights
from perflint.rules.optimizer.capturable_unneeded import CapturableUnneeded
from perflint.rules.optimizer.for_loop_optimizer import ForLoopOptimizer
from perflint.rules.optimizer.zero_grad_memset import ZeroGradMemset
from perflint.rules.registry import RuleSet
from perflint.rules.transfer.accidental_float64 import AccidentalFloat64
from perflint.semantics.project import Project
from perflint.source.text import Source


def found(folder: Path, rule: type[Rule], **files: str) -> list[Finding]:
    """The findings of a rule in `train.py`, one of some files of a project."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    path = folder / "train.py"
    source = Source(str(path), path.read_text(encoding="utf-8"))
    rules, settings = RuleSet((rule(),)), Settings(profile=Profile.AUDIT)
    return list(check_source(source, Project(sorted(folder.glob("*.py"))), rules, settings).findings)


ZEROED = """
def train(model, loader, optimizer):
    for x in loader:
        optimizer.zero_grad(set_to_none=False)
        model(x).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    "written",
    [
        "p.grad.data = total",
        "p.grad = total",
        "p.grad += total",
        "p.grad.data[:] = total",
        "p.grad.add_(total)",
        "p.grad.data.copy_(total)",
    ],
)
def test_code_that_writes_to_gradients_needs_them(tmp_path: Path, written: str) -> None:
    weighting = f"def share(parameters, total):\n    for p in parameters:\n        if p.grad:\n            {written}\n"
    (one,) = found(tmp_path, ZeroGradMemset, train=ZEROED, weighting=weighting)
    assert one.confidence is Confidence.LOW and one.fix is None
    assert one.help is not None and one.help.startswith("Code on line 4 of weighting.py writes to gradients")


@pytest.mark.parametrize(
    "read",
    ["if p.grad is not None: p.grad.mul_(total)", "p.grad = None", "p.grad == total", "grad = total", "p.grad.norm()"],
)
def test_code_that_only_reads_gradients(tmp_path: Path, read: str) -> None:
    weighting = f"def share(parameters, total):\n    for p in parameters:\n        {read}\n"
    (one,) = found(tmp_path, ZeroGradMemset, train=ZEROED, weighting=weighting)
    assert one.confidence is Confidence.MEDIUM and one.fix is None
    assert one.help is not None and "then gets None" in one.help


CAPTURABLE = """
import torch

def make(model: torch.nn.Module, rate: float):
    return torch.optim.AdamW(model.parameters(), lr=rate, capturable=True)
"""
PLAIN = "def schedule(optimizer, rate):\n    for group in optimizer.param_groups:\n        group['lr'] = rate\n"


@pytest.mark.parametrize(
    "other",
    [
        PLAIN.replace("= rate", "= torch.tensor(rate)"),
        PLAIN.replace(" = rate", ".fill_(rate)"),
        "import torch\n\ndef record(graph, step):\n    with torch.cuda.graph(graph):\n        step()\n",
        "import torch\n\ndef fast(step):\n    return torch.compile(step)\n",
    ],
    ids=["assigned", "filled", "captured", "compiled"],
)
def test_another_file_needs_a_capturable_optimizer(tmp_path: Path, other: str) -> None:
    assert found(tmp_path, CapturableUnneeded, train=CAPTURABLE, other=other) == []


def test_numbers_need_no_capturable_optimizer(tmp_path: Path) -> None:
    assert len(found(tmp_path, CapturableUnneeded, train=CAPTURABLE, other=PLAIN)) == 1


RETAINED = """
import torch
from network import Network

def train(loader):
    model = Network().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        loss = model(x.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""
NETWORK = """
import torch

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.Linear(8, 8)
        self.last = None

    def forward(
        self,
        x,
    ):
        y = self.cell(x)

        {then}
        return y

    def reset(self):
        self.last = None
"""


@pytest.mark.parametrize(
    ("then", "fixes"), [("self.last = y", False), ("y = y.relu()", True), ("assert self.last == y", True)]
)
def test_a_module_of_another_file_that_keeps_its_result_needs_the_graph(tmp_path: Path, then: str, fixes: bool) -> None:
    (one,) = found(tmp_path, NeedlessRetainGraph, train=RETAINED, network=NETWORK.format(then=then))
    assert (one.fix is not None) is fixes


ATTENTION = """
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.attention(x, x, x)[0]
"""


@pytest.mark.parametrize(
    ("read", "fixes"),
    [
        ("layer.register_forward_hook(keep)", False),
        ("torch.autograd.grad(y, x, create_graph=True)", False),
        ("torch.autograd.grad(y, x)", True),
    ],
)
def test_another_file_may_read_attention_weights(tmp_path: Path, read: str, fixes: bool) -> None:
    (one,) = found(
        tmp_path,
        UnusedAttentionWeights,
        train=ATTENTION,
        other=f"import torch\nimport train\n\ndef run(layer, x, y, keep):\n    {read}\n",
    )
    assert one.confidence is Confidence.HIGH and (one.fix is not None) is fixes


NORMED = """
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        return self.norm(self.conv(x))
"""


@pytest.mark.parametrize(
    ("touched", "fixes"),
    [
        ("nn.init.zeros_(m.bias)", False),
        ("m.bias.data.zero_()", False),
        ("if m.bias is not None: nn.init.zeros_(m.bias)", True),
        ("nn.init.normal_(m.weight)", True),
    ],
)
def test_another_file_may_need_the_bias(tmp_path: Path, touched: str, fixes: bool) -> None:
    other = f"import train\nfrom torch import nn\n\ndef initialize(m):\n    {touched}\n"
    (one,) = found(tmp_path, BiasBeforeNorm, train=NORMED, other=other)
    assert (one.fix is not None) is fixes


SCALED = """
import torch

def make(model: torch.nn.Module):
    return torch.optim.SGD(model.cuda().parameters(), lr=0.1, foreach=False{more})
"""


@pytest.mark.parametrize(
    ("more", "other", "fixes"),
    [
        ("", "table = torch.nn.Embedding(8, 8)", True),
        ("", "table = torch.nn.Embedding(8, 8, sparse=True)", False),
        (", **options", "options = {'differentiable': True}", False),
    ],
)
def test_the_fused_form_is_not_for_all_gradients(tmp_path: Path, more: str, other: str, fixes: bool) -> None:
    (one,) = found(tmp_path, ForLoopOptimizer, train=SCALED.format(more=more), other=f"import torch\n\n{other}\n")
    assert (one.fix is not None) is fixes


DOUBLES = """
import numpy as np
import torch

def noise(n: int):
    return torch.tensor(np.random.randn(n)).cuda()
"""


@pytest.mark.parametrize(("cast", "fixes"), [("model.double()", False), ("model.float()", True)])
def test_a_model_in_double_precision_needs_doubles(tmp_path: Path, cast: str, fixes: bool) -> None:
    (one,) = found(tmp_path, AccidentalFloat64, train=DOUBLES, other=f"def prepare(model):\n    return {cast}\n")
    assert (one.fix is not None) is fixes
