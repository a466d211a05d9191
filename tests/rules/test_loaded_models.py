"""missing-eval-mode in files that load a model and run it: a fixture trains, and so cannot show them."""

from __future__ import annotations

import pytest

from perflint.rules.evaluation.missing_eval_mode import MissingEvalMode
from tests.rules.harness import lint

LOADED = """
import torch
from networks import Net


def predict(net, image):
    with torch.no_grad():
        return net(image.unsqueeze(0)).argmax(1)


net = Net()
net.load_state_dict(torch.load("net.pth"))
net.cuda()
print(predict(net, torch.rand(3, 32, 32).cuda()))
"""
WHOLE = """
import torch

model = torch.load("model.pth")
for i in range(100):
    print(model(torch.rand(1, 8)))
"""


@pytest.mark.parametrize(("text", "line"), [(LOADED, 8), (WHOLE, 6)])
def test_a_loaded_model_is_run_in_training_mode(text: str, line: int) -> None:
    assert [finding.span.line for finding in lint(text, [MissingEvalMode], "default")] == [line]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("net.cuda()", "net.cuda().eval()"),
        ("net.cuda()", "net.train(False)"),
        ("net.cuda()", "set_eval_mode(net)"),
        ("net.cuda()", "net(torch.rand(2, 3, 32, 32)).sum().backward()"),
        ("def predict", "def dropout_ensemble"),
        ("net.load_state_dict(", "print("),
        ("Net()", "torch.nn.Linear(32, 8)"),
    ],
)
def test_what_else_may_be_meant(old: str, new: str) -> None:
    assert not lint(LOADED.replace(old, new), [MissingEvalMode], "audit")
