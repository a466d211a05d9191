"""Fixes that fail where a parameter is no tensor by default, or where a part of a checkpoint stays on its device."""

from __future__ import annotations

import pytest

from perflint.rules.optimizer.optimizer_step_on_gpu import OptimizerStepOnGpu
from perflint.rules.sync.nonzero_family import NonzeroFamily
from tests.rules.test_refused_fixes import fixed

SELECTS = """import torch

def select(points: torch.Tensor, colors: torch.Tensor, {mask}):
    points, colors = points.cuda(), colors.cuda()
    return points[mask], colors[mask]
"""


@pytest.mark.parametrize(
    ("mask", "is_fixed"),
    [
        ("mask: torch.Tensor", True),
        ("mask: torch.Tensor = slice(None)", False),
        ("mask: torch.Tensor = ...", False),
        ("mask: torch.Tensor = 0", False),
        ("mask: torch.Tensor = None", False),
        ("mask: torch.Tensor = torch.ones(3) > 0", True),
    ],
)
def test_a_default_that_is_no_tensor_is_not_asked(mask: str, is_fixed: bool) -> None:
    text = SELECTS.format(mask=mask)
    assert ("nonzero(as_tuple=True)" in fixed(NonzeroFamily, text)) is is_fixed


RESUMES = """import torch

class Trainer:
    def __init__(self, model: torch.nn.Module):
        self.optimizer = torch.optim.Adam(model.parameters())
        self.frames = 0
        self.log_alpha = torch.zeros(1, device="cuda", requires_grad=True)

    def save(self, path: str):
        torch.save({{"optimizer": self.optimizer.state_dict(), {saved}}}, path)

    def load(self, path: str):
        state = torch.load(path, map_location="cuda")
        self.optimizer.load_state_dict(state["optimizer"])
        {then}
"""
TENSOR = '"log_alpha": self.log_alpha'


@pytest.mark.parametrize(
    ("saved", "then", "is_fixed"),
    [
        ('"frames": self.frames', 'self.frames = state["frames"]', True),
        (TENSOR, 'self.frames = state["frames"]', True),
        (TENSOR, "pass", True),
        (TENSOR, 'self.log_alpha = state["log_alpha"]', False),
        (TENSOR, 'self.log_alpha = state.get("log_alpha")', False),
        (TENSOR, 'self.log_alpha.data.copy_(state["log_alpha"])', False),
    ],
)
def test_a_tensor_of_a_checkpoint_stays_on_its_device(saved: str, then: str, is_fixed: bool) -> None:
    text = RESUMES.format(saved=saved, then=then)
    assert ('map_location="cpu"' in fixed(OptimizerStepOnGpu, text)) is is_fixed
