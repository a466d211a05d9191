"""Fixes are judged by the findings that the same work finds before and after them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.file import check_source
from perflint.engine.fixing import fix_text
from perflint.findings import Report, Safety, up_to
from perflint.semantics.interpreter import analysis
from perflint.semantics.project import Project
from perflint.source.text import Source

AUDIT = replace(Settings(), profile=Profile.AUDIT)
PROGRAM = """
import torch
from helper import enough

model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

def train(loader):
    for x in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()
        if enough():
            break
"""
FUSED = PROGRAM.replace("lr=0.01)", "lr=0.01, fused=True)")


def helper(lines: int) -> str:
    """A function whose result is known to be on the GPU if all of it is run."""
    return "import torch\ndef enough():\n" + "    n = 1\n" * lines + "    return torch.ones(3).cuda().sum() > 1\n"


def check(path: str, text: str, project: Project) -> Report:
    return check_source(Source(path, text), project, active_rules(AUDIT), AUDIT)


def codes(path: Path, text: str) -> list[str]:
    return [finding.code for finding in check(str(path), text, Project()).findings]


def test_a_finding_of_more_work_is_not_the_harm_of_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A longer text may have more work done, so that a call in an untouched line is followed for the first time."""
    monkeypatch.setattr(analysis, "_STEPS_PER_NODE", 1)
    program, differ = tmp_path / "program.py", 0
    for lines in range(43, 50):
        (tmp_path / "helper.py").write_text(helper(lines))
        program.write_text(PROGRAM)
        differ += "TPF105" in codes(program, FUSED) and "TPF105" not in codes(program, PROGRAM)
        outcome, problems = fix_text(str(program), PROGRAM, Project(), check, up_to(Safety.UNSAFE))
        assert outcome is not None and not problems
        assert outcome.text == FUSED, [skipped.reason for skipped in outcome.skipped]
    assert differ, "the example does not depend on the amount of work"


def test_what_a_package_imports_is_there_for_others(tmp_path: Path) -> None:
    """A fix leaves the import that it makes unused in a package, and removes it elsewhere."""
    text = (
        "import gc\nimport torch\n\ndef train(loader):\n    for x in loader:\n        x.cuda()\n        gc.collect()\n"
    )
    for name in ("__init__.py", "train.py"):
        path = tmp_path / name
        path.write_text(text)
        outcome, problems = fix_text(str(path), text, Project([path]), check, Safety)
        assert outcome is not None and not problems
        assert "gc.collect" not in outcome.text
        assert ("import gc" in outcome.text) is (name == "__init__.py")
