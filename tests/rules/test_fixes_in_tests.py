"""In the tests of a project, fixes are not written unless they correct something; in notebooks assertions stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Safety
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source

TEXT = """import torch


def test_training(model: torch.nn.Module, loader, optimizer):
    for x in loader:
        loss = model(x.cuda()).mean()
        assert torch.isfinite(loss)
        assert (x.cuda() > 0).all()
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()
"""


FIXED = {"TPF105", "TPF107", "TPF123"}
FILES = [
    ("train.py", FIXED),
    ("evaluation/testing_loop.py", FIXED),
    ("train.ipynb", {"TPF123"}),
    ("test_train.py", set()),
    ("package/testing/checks.py", set()),
    ("package/testing.py", set()),
    ("package/testing_utils.py", set()),
]


@pytest.mark.parametrize(("name", "fixed"), FILES)
def test_fixes_in_tests(name: str, fixed: set[str]) -> None:
    source = Source(name, TEXT)
    settings = Settings(profile=Profile.AUDIT, torch_version=(2, 6))
    report = check_source(source, Project([Path(name)]), RuleSet(all_rules()), settings)
    found = [finding for finding in report.findings if finding.code in ("TPF105", "TPF107", "TPF123")]
    assert {finding.code for finding in found} == FIXED
    assert {finding.code for finding in found if finding.fix is not None} == fixed


@pytest.mark.parametrize(("name", "is_fixed"), [("train.py", True), ("test_train.py", False)])
def test_assertions_of_several_parts(name: str, is_fixed: bool) -> None:
    test = "(x.cuda() > 0).all() and (x.cuda() < 3).all()"
    text = f"import torch\n\n\ndef test_it(x: torch.Tensor):\n    assert {test}\n    if {test}:\n        return 1\n"
    report = check_source(
        Source(name, text), Project([Path(name)]), RuleSet(all_rules()), Settings(profile=Profile.AUDIT)
    )
    lines = {finding.span.line for finding in report.findings if finding.fix is not None}
    assert lines == ({5, 6} if is_fixed else {6})


def test_arguments_of_a_trainer_in_tests() -> None:
    text = "from transformers import TrainingArguments\n\nsettings = TrainingArguments(report_to=[])\n"
    fixed = []
    for name in ("train.py", "tests/test_train.py"):
        report = check_source(
            Source(name, text + "\n\ndef test_it():\n    assert settings\n"),
            Project([Path(name)]),
            RuleSet(all_rules()),
            Settings(profile=Profile.AUDIT),
        )
        (found,) = [finding for finding in report.findings if finding.code == "TPF942"]
        fixed.append(found.fix is not None)
    assert fixed == [True, False]


SMALL = """import torch


def test_indices(device):
    expected = torch.zeros(3, device="cuda")
    expected[1] = 3.0
    index = torch.tensor([5], device="cuda")
    scaler = torch.cuda.amp.GradScaler()
    assert scaler and torch.equal(expected, index)
"""


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("train.py", {"TPF117", "TPF135", "TPF902"}),
        ("package/testing.py", {"TPF117", "TPF135", "TPF902"}),
        ("test_train.py", {"TPF902"}),
        ("tests/helpers.py", {"TPF902"}),
    ],
)
def test_small_gains_are_not_written_in_tests(name: str, written: set[str]) -> None:
    settings = Settings(profile=Profile.AUDIT, torch_version=(2, 6))
    report = check_source(Source(name, SMALL), Project([Path(name)]), RuleSet(all_rules()), settings)
    fixes = {finding.code: finding.fix for finding in report.findings if finding.fix is not None}
    assert {code for code, fix in fixes.items() if fix.safety is not Safety.DISPLAY} == written
    assert {"TPF117", "TPF135"} <= fixes.keys()
