"""The modes of a module that has several names, or is switched at the end of a row of calls."""

from __future__ import annotations

import pytest

from perflint.rules.evaluation.eval_without_no_grad import EvalWithoutNoGrad
from perflint.rules.evaluation.missing_eval_mode import MissingEvalMode
from tests.rules.harness import lint

VALIDATE = """\
import torch
from torch import nn

{context}
def validate(model: nn.Module, loader, device):
    {before}
    hits = 0
    for x, y in loader:
        hits += ({run}(x).argmax(1) == y).sum()
    return hits.item()
"""
OF_CLASS = """\
import torch
from torch import nn

class Trainer:
    def __init__(self, model: nn.Module):
        self.model = model.cuda()
        self.fast = torch.compile(self.model)

    @torch.no_grad()
    def validate(self, loader):
        {switch}
        hits = 0
        for x, y in loader:
            hits += ({run}(x).argmax(1) == y).sum()
        return hits.item()
"""
SWITCHES = [
    ("model.to(device).eval()", "model"),
    ("model.cuda().eval()", "model"),
    ("model.requires_grad_(False).eval()", "model"),
    ("model.to(device, memory_format=torch.channels_last).half().train(False)", "model"),
    ("fast = torch.compile(model)\n    model.eval()", "fast"),
    ("fast = torch.compile(model.to(device), mode='reduce-overhead').eval()", "model"),
    ("parallel = nn.DataParallel(model)\n    parallel.eval()", "model"),
]


@pytest.mark.parametrize(("before", "run"), SWITCHES)
def test_a_switch_concerns_the_module_that_it_is_called_on(before: str, run: str) -> None:
    code = VALIDATE.format(context="@torch.no_grad()", before=before, run=run)
    assert not lint(code, [MissingEvalMode], "audit")
    graph = VALIDATE.format(context="", before=before.replace(".requires_grad_(False)", ""), run=run)
    assert lint(graph, [EvalWithoutNoGrad], "default")


@pytest.mark.parametrize("before", ["model.to(device).train()", "model.cuda()", "fast = torch.compile(model.cuda())"])
def test_a_module_that_stays_in_training_mode_is_reported(before: str) -> None:
    run = "fast" if "fast" in before else "model"
    assert lint(VALIDATE.format(context="@torch.no_grad()", before=before, run=run), [MissingEvalMode], "default")


@pytest.mark.parametrize("switch", ["self.model.eval()", "self.fast.eval()"])
@pytest.mark.parametrize("run", ["self.model", "self.fast"])
def test_a_compiled_attribute_is_the_same_module(switch: str, run: str) -> None:
    assert not lint(OF_CLASS.format(switch=switch, run=run), [MissingEvalMode], "audit")


LOADED = """\
import timm
import torch

model = timm.create_model("resnet50", pretrained=True)
{fast}
output = {run}(torch.randn(8, 3, 64, 64))
"""


@pytest.mark.parametrize(("fast", "run"), [("", "model"), ("fast = torch.compile(model.cuda())", "fast")])
def test_pretrained_models_are_reported_under_any_name(fast: str, run: str) -> None:
    assert lint(LOADED.format(fast=fast, run=run), [MissingEvalMode], "default")
    assert not lint(LOADED.format(fast=fast + "\nmodel.eval()", run=run), [MissingEvalMode], "audit")
