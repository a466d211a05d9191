"""missing-eval-mode in files that load a model and run it: a fixture trains, and so cannot show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.rules.evaluation.missing_eval_mode import MissingEvalMode
from perflint.rules.registry import RuleSet
from perflint.semantics.project import Project
from perflint.source.text import Source
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
PRETRAINED = """
import timm
import torch
from torchvision import models


class Extractor:
    def __init__(self):
        self.net = models.resnet18(weights="DEFAULT").to("cuda")

    def describe(self, x):
        with torch.no_grad():
            return self.net(x).cpu().numpy()


model = timm.create_model("resnet50", pretrained=True)
model = model.cuda()
print(model(torch.rand(1, 3, 224, 224, device="cuda")).tolist())
"""


@pytest.mark.parametrize(("text", "line"), [(LOADED, 8), (WHOLE, 6)])
def test_a_loaded_model_is_run_in_training_mode(text: str, line: int) -> None:
    """Nobody has seen the class: it may be the same in both modes."""
    assert [finding.span.line for finding in lint(text, [MissingEvalMode], "audit")] == [line]
    assert not lint(text, [MissingEvalMode], "default")


SEEN = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))

    def forward(self, x):
        return self.body(x)


net = Net()
net.load_state_dict(torch.load("net.pth"))
print(net(torch.rand(1, 3, 32, 32)))
"""


def test_a_loaded_model_whose_class_is_seen() -> None:
    assert [finding.span.line for finding in lint(SEEN, [MissingEvalMode], "default")] == [17]
    assert not lint(SEEN.replace("nn.BatchNorm2d(8)", "nn.ReLU()"), [MissingEvalMode], "audit")


def test_pretrained_models_are_in_training_mode() -> None:
    found = lint(PRETRAINED, [MissingEvalMode], "default")
    assert sorted(finding.span.line for finding in found) == [13, 18]
    without = PRETRAINED.replace('weights="DEFAULT"', "weights=None").replace("pretrained=True", "pretrained=False")
    assert not lint(without, [MissingEvalMode], "audit")


GUIDED = """
import torch
from networks import Guide, Net


class Distiller:
    def __init__(self):
        self.net, self.others = Net().cuda(), []
        self.net = Net().cuda()
        self.guide = Guide().cuda()

    def fit(self, loader, optimizer):
        self.guide.eval()
        for x in loader:
            (self.net(x) - self.guide(x)).square().mean().backward()
            optimizer.step()

    def validate(self, val_loader):
        with torch.no_grad():
            return [self.net(x).argmax(1).cpu() for x in val_loader]


distiller = Distiller()
"""


def test_another_model_is_switched() -> None:
    text = GUIDED.replace("        self.net, self.others = Net().cuda(), []\n", "")
    assert [finding.span.line for finding in lint(text, [MissingEvalMode], "default")] == [19]
    assert not lint(text.replace("self.guide.eval()", "self.net.eval()"), [MissingEvalMode], "audit")
    assert not lint(text.replace("self.guide.eval()", "[m.eval() for m in (self.net,)]"), [MissingEvalMode], "audit")
    assert not lint(GUIDED, [MissingEvalMode], "audit"), "a tuple may hold the other's name"


def test_parts_that_nobody_has_seen_may_be_the_same_in_both_modes() -> None:
    text = SEEN.replace("nn.BatchNorm2d(8)", "Block(8)")
    assert not lint(text, [MissingEvalMode], "default")
    assert lint(text, [MissingEvalMode], "audit")
    assert lint(text.replace("Block(8)", "Block(8), nn.Dropout(0.1)"), [MissingEvalMode], "default")


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


ALONE = """
import torch
from networks import Styler
from training import evaluate

other = torch.nn.Linear(2, 2)
other.eval()


def stylize(image, path):
    with torch.no_grad():
        styler = Styler()
        styler.load_state_dict(torch.load(path))
        styler.to("cuda")
        return styler(image).cpu()
"""


def test_a_model_that_one_function_makes_loads_and_runs() -> None:
    assert [finding.span.line for finding in lint(ALONE, [MissingEvalMode], "audit")] == [15]
    for line in ("styler.eval()", "set_mode(styler)", "styler.mode()", "styler(image).sum().backward()"):
        assert not lint(ALONE.replace('styler.to("cuda")', line), [MissingEvalMode], "audit"), line


RESTORING = """
import torch
from handlers import Base


class Handler:
    def restore(self, path):
        state = torch.load("net.pth")
        self.net.load_state_dict(state)

    def finish(self, x):
        return self.net(x)
"""


def test_classes_that_leave_the_mode_to_others() -> None:
    assert lint(RESTORING, [MissingEvalMode], "audit")
    given = RESTORING.replace("(self, path)", "(self, state)").replace('        state = torch.load("net.pth")\n', "")
    assert not lint(given, [MissingEvalMode], "audit")
    assert not lint(RESTORING.replace("Handler:", "Handler(Base):"), [MissingEvalMode], "audit")


EVALUATED = """
import torch


@torch.no_grad()
def test(model, loader):
    hits = 0
    for x, y in loader:
        hits += (model(x).argmax(1) == y).sum().item()
    return hits
"""


CALLED = f"{EVALUATED}\n\nif __name__ == '__main__':\n    print(test(make(), load()))\n"


@pytest.mark.parametrize("text", [EVALUATED, CALLED])
def test_importers_may_set_the_mode(tmp_path: Path, text: str) -> None:
    """Another file of the project may switch the model before it calls the function."""
    path = tmp_path / "evaluation.py"
    path.write_text(text)

    def found(profile: Profile) -> list[int]:
        project, rules = Project(sorted(tmp_path.glob("*.py"))), RuleSet([MissingEvalMode()])
        report = check_source(Source(str(path), text), project, rules, Settings(profile=profile))
        return [finding.span.line for finding in report.findings]

    assert found(Profile.DEFAULT) == [9]
    (tmp_path / "main.py").write_text("from evaluation import test\n\nnet.eval()\nprint(test(net, loader))\n")
    assert found(Profile.DEFAULT) == [] and found(Profile.AUDIT) == [9]
