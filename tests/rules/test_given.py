"""Parameters that calls of each step pass on the CPU, and others on the GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Confidence, Finding
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source

NET = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.device = torch.device("cpu")
    def put(self, device):
        self.device = torch.device(device)
        self.to(device)
    def forward(self, tokens, labels=None):
        tokens = tokens.to(self.device)
        return self.layer(tokens)
"""
TRAINING = """
def train(data):
    net = Net()
    net.put("cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)
    for {batch} in torch.utils.data.DataLoader(data, batch_size=4):
        loss = net({passed}).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SAMPLING = """
def sample():
    net = Net()
    net.put("cuda")
    tokens = torch.zeros(1, 4, dtype=torch.long, device="cuda")
    for _ in range(10):
        tokens = net(tokens).argmax(1)
"""


def moves(folder: Path, *texts: str) -> list[Finding]:
    """The findings about copies to the GPU in the first of some files, without those of low confidence."""
    paths = [folder / name for name in ("net.py", "train.py", "sample.py")[: len(texts)]]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    settings = Settings(profile=Profile.AUDIT)
    report = check_source(Source(str(paths[0]), texts[0]), Project(paths), RuleSet(all_rules()), settings)
    return [each for each in report.findings if each.code == "TPF201" and each.confidence is not Confidence.LOW]


def training(batch: str, passed: str) -> str:
    return TRAINING.format(batch=batch, passed=passed)


IMPORTS = "import torch\nfrom net import Net\n"


@pytest.mark.parametrize("passed", ["x", "tokens=x", "x, y"])
def test_a_loop_in_another_file_passes_it_on_the_cpu(tmp_path: Path, passed: str) -> None:
    (found,) = moves(tmp_path, NET, IMPORTS + training("x, y", passed), IMPORTS + SAMPLING)
    assert found.confidence is Confidence.MEDIUM
    assert found.why is not None and found.why.startswith("`tokens`: passed by `train`, on the CPU")


def test_a_loop_in_the_same_file_passes_it_on_the_cpu(tmp_path: Path) -> None:
    (found,) = moves(tmp_path, NET + training("x, y", "x") + SAMPLING)
    assert found.why is not None and "passes `x`, on the CPU" in found.why


@pytest.mark.parametrize(
    ("net", "others"),
    [
        # All calls pass it on the GPU.
        (NET, (IMPORTS + training("x, y", "x.cuda()"), IMPORTS + SAMPLING)),
        # The call that passes it on the CPU runs once.
        (NET, (IMPORTS + "print(Net()(torch.zeros(1, 4)).shape)\n", IMPORTS + SAMPLING)),
        # Another parameter is passed on the CPU.
        (NET, (IMPORTS + training("x, y", "x.cuda(), labels=y"), IMPORTS + SAMPLING)),
        # The name is bound again before.
        (
            NET.replace(
                "        tokens = tokens.to", "        tokens = self.layer(tokens.float())\n        tokens = tokens.to"
            ),
            (IMPORTS + training("x, y", "x"), IMPORTS + SAMPLING),
        ),
        # The copy does not block.
        (
            NET.replace("self.device)\n        return", "self.device, non_blocking=True)\n        return"),
            (IMPORTS + training("x, y", "x"),),
        ),
    ],
)
def test_not_given_on_the_cpu(tmp_path: Path, net: str, others: tuple[str, ...]) -> None:
    assert moves(tmp_path, net, *others) == []
