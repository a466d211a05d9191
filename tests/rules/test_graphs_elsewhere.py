"""Callables that another file makes run as CUDA graphs (TPF804, TPF805)."""

from __future__ import annotations

from pathlib import Path

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.files import check_files

AUDIT = Settings(profile=Profile.AUDIT)
BUILD = """import torch
from torch import nn

def build(net: nn.Module) -> nn.Module:
    return torch.compile(net.cuda().eval(), mode="reduce-overhead")

class Runner:
    def __init__(self, net: nn.Module, sample: torch.Tensor):
        self.graphed = torch.cuda.make_graphed_callables(net, (sample,))

@torch.compile(mode="reduce-overhead")
def fused(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@torch.compile
def plain(x: torch.Tensor) -> torch.Tensor:
    return x * 2
"""
USE = """import torch
from build import Runner, build, fused, plain

@torch.inference_mode()
def embed(net, batches):
    model = build(net)
    return [model(x.cuda()) for x in batches]

@torch.inference_mode()
def run(net, batches, sample: torch.Tensor):
    runner = Runner(net, sample)
    return [runner.graphed(x.cuda(), mask=None) for x in batches]

@torch.inference_mode()
def decorated(batches):
    return [fused(x.cuda()) for x in batches]

@torch.inference_mode()
def without_graphs(batches):
    return [plain(x.cuda()) for x in batches]
"""


def test_graphs_of_another_file(tmp_path: Path) -> None:
    (tmp_path / "build.py").write_text(BUILD, encoding="utf-8")
    (tmp_path / "use.py").write_text(USE, encoding="utf-8")
    reports = check_files([str(tmp_path / "use.py")], active_rules(AUDIT), AUDIT)
    found = [(each.code, each.span.line) for _, report in reports for each in report.findings]
    assert [each for each in found if each[0].startswith("TPF80")] == [
        ("TPF805", 7),
        ("TPF804", 12),
        ("TPF805", 12),
        ("TPF805", 16),
    ]
