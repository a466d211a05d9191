"""Findings in a folder that is a copy of another one count in the original."""

from __future__ import annotations

from pathlib import Path

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.engine.projects import Projects
from perflint.findings import Purpose
from perflint.rules.registry import RuleSet, all_rules
from perflint.source.text import Source

MODEL = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=64, depth=3):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3)
        self.norm = nn.BatchNorm2d(width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        x = self.norm(self.first(x)).mean((2, 3))
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x
"""
ENGINE = """\
import torch
from model import Net


def train(loader, epochs):
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0.0
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = (model(x.cuda()) - y.cuda()).square().mean()
            loss.backward()
            optimizer.step()
            total += loss.item()
    return total


if __name__ == "__main__":
    train([], 3)
"""
SETTINGS = Settings(profile=Profile.AUDIT)
RULES = RuleSet([rule for rule in all_rules() if rule.code in ("TPF101", "TPF301")])


def found(folder: Path, path: str, files: dict[str, str]) -> dict[str, bool]:
    """The codes of the findings of a file in a project, and whether each is a copy's, and information."""
    (folder / ".git").mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    file = folder / path
    report = check_source(Source(str(file), file.read_text()), Projects(SETTINGS).of(file), RULES, SETTINGS)
    assert not report.problems
    copies = {each.code: each.judgement.purpose is Purpose.COPY for each in report.findings if each.judgement}
    information = {each.code: each.judgement.is_information for each in report.findings if each.judgement}
    assert copies.keys() == information.keys() and all(information[code] for code, copied in copies.items() if copied)
    return copies


ORIGINAL = {"src/model.py": MODEL, "src/engine.py": ENGINE, "src/data.py": "SIZE = 3\n"}
SAVED = {"results/run1/model.py": MODEL, "results/run1/engine.py": ENGINE}


def test_a_copy_gives_way_to_its_original(tmp_path: Path) -> None:
    project = ORIGINAL | SAVED
    assert found(tmp_path, "results/run1/engine.py", project) == {"TPF101": True}
    assert found(tmp_path, "results/run1/model.py", project) == {"TPF301": True}
    assert found(tmp_path, "src/engine.py", project) == {"TPF101": False}
    assert found(tmp_path, "src/model.py", project) == {"TPF301": False}


def test_the_copy_says_of_what(tmp_path: Path) -> None:
    found(tmp_path, "src/engine.py", ORIGINAL | SAVED)
    file = tmp_path / "results/run1/engine.py"
    report = check_source(Source(str(file), ENGINE), Projects(SETTINGS).of(file), RULES, SETTINGS)
    (finding,) = report.findings
    assert finding.judgement is not None
    assert finding.judgement.evidence == "its folder is a copy of that of `src/engine.py`"


def test_of_equal_folders_the_shorter_path_is_the_original(tmp_path: Path) -> None:
    project = SAVED | {"model.py": MODEL, "engine.py": ENGINE}
    assert found(tmp_path, "engine.py", project) == {"TPF101": False}
    assert found(tmp_path, "results/run1/engine.py", project) == {"TPF101": True}


def test_a_copy_stays_one_when_the_original_is_fixed(tmp_path: Path) -> None:
    changed = ENGINE.replace("total += loss.item()", "total += loss.detach()")
    project = ORIGINAL | SAVED | {"src/engine.py": changed}
    assert found(tmp_path, "results/run1/engine.py", project) == {"TPF101": True}
    assert found(tmp_path, "results/run1/model.py", project) == {"TPF301": True}


def test_single_programs_that_are_alike_are_no_copies(tmp_path: Path) -> None:
    project = {"first/engine.py": ENGINE, "second/engine.py": ENGINE, "model.py": MODEL}
    assert found(tmp_path, "first/engine.py", project) == {"TPF101": False}
    assert found(tmp_path, "second/engine.py", project) == {"TPF101": False}


def test_folders_with_other_code_under_the_same_names_are_no_copies(tmp_path: Path) -> None:
    other = MODEL.replace("Conv2d", "Conv1d").replace("x", "inputs").replace("layer", "block").replace("self", "this")
    project = ORIGINAL | {
        "other/model.py": other,
        "other/engine.py": ENGINE.replace("x", "image").replace("y", "label"),
    }
    assert not any(found(tmp_path, "other/engine.py", project).values())
