"""What code around a layer makes of a finding about its bias."""

from __future__ import annotations

import pytest

from perflint.findings import Confidence, Finding
from perflint.rules.model.bias_before_norm import BiasBeforeNorm
from tests.rules.harness import lint

BLOCK = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3)
        self.norm = nn.BatchNorm2d(width)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.norm(self.conv(x)).mean((2, 3)))
"""


def judge(more: str) -> Finding:
    (finding,) = lint(BLOCK + more, [BiasBeforeNorm], "audit")
    return finding


def test_a_plain_block_is_certain_and_fixable() -> None:
    finding = judge("")
    assert finding.confidence is Confidence.HIGH and finding.fix is not None


@pytest.mark.parametrize(
    "body",
    [
        "nn.init.zeros_(m.bias)",
        "if isinstance(m, nn.Conv2d): nn.init.zeros_(m.bias)",
        "if isinstance(m, (nn.Linear, nn.Conv2d)): m.bias.data.zero_()",
        "if isinstance(m, nn.modules.conv._ConvNd): m.bias.data.zero_()",
        "if hasattr(m, 'bias'): m.bias.data.zero_()",
        "if type(m).__name__.find('Conv') != -1 or type(m).__name__ == 'BatchNorm2d': m.bias.data.zero_()",
    ],
)
def test_a_bias_that_is_set_by_hand_keeps_its_layer(body: str) -> None:
    finding = judge(f"\ndef init(m):\n    {body}\n")
    assert finding.confidence is Confidence.MEDIUM and finding.fix is None


@pytest.mark.parametrize(
    "body",
    [
        "if m.bias is not None: nn.init.zeros_(m.bias)",
        "if hasattr(m, 'bias') and m.bias is not None: m.bias.data.zero_()",
        "if isinstance(m, nn.Linear): nn.init.zeros_(m.bias)",
        "if isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)): m.bias.data.zero_()",
        "nn.init.zeros_(m.bias) if m.bias is not None else None",
        "if getattr(m, 'bias', None) is not None: pass",
        "if m.__class__.__name__.find('BatchNorm') != -1: m.bias.data.zero_()",
        "nn.init.kaiming_normal_(m.weight)",
    ],
)
def test_a_bias_that_is_asked_for_first_does_not(body: str) -> None:
    finding = judge(f"\ndef init(m):\n    {body}\n")
    assert finding.confidence is Confidence.HIGH and finding.fix is not None


def test_the_norms_own_bias_is_another() -> None:
    finding = judge("        self.norm.bias.data.zero_()\n".join(["\nclass Other(Block):\n    def reset(self):\n", ""]))
    assert finding.fix is not None


FREEZE = """
def freeze(net):
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.eval()
"""
STAYS = """
class Tuned(Block):
    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
"""


@pytest.mark.parametrize("more", [FREEZE, STAYS])
def test_frozen_norms_subtract_what_they_stored(more: str) -> None:
    finding = judge(more)
    assert finding.confidence is Confidence.LOW and finding.fix is None


def test_a_model_in_evaluation_mode_is_not_frozen() -> None:
    assert judge("\ndef serve(net: Block, x):\n    net.eval()\n    return net(x)\n").fix is not None


@pytest.mark.parametrize(
    ("more", "confidence"),
    [
        ("\ndef resume(net, path):\n    net.load_state_dict(torch.load(path))\n", Confidence.HIGH),
        ("\ndef block(pretrained=False):\n    return Block(64)\n", Confidence.LOW),
    ],
)
def test_loaded_weights_keep_their_layout(more: str, confidence: Confidence) -> None:
    finding = judge(more)
    assert finding.confidence is confidence and finding.fix is None
