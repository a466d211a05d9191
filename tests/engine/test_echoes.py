"""One claim for each place."""

from __future__ import annotations

from pathlib import Path

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source

RULES = ("TPF101", "TPF110", "TPF701", "TPF704")
COMPILED = """\
import torch

{decorator}
def step(x: torch.Tensor) -> torch.Tensor:
    x = x.cuda()
    scale = x.max().item()
    x[torch.where(x > 0)] = 0.0
    return x * scale
"""


def codes(decorator: str) -> list[tuple[int, str, bool]]:
    source = Source("example.py", COMPILED.format(decorator=decorator))
    settings = Settings(profile=Profile.AUDIT)
    rules = RuleSet(rule for rule in all_rules() if rule.code in RULES)
    report = check_source(source, Project([Path(source.path)]), rules, settings)
    assert not report.problems
    return [(found.span.line, found.code, found.fix is not None) for found in report.findings if found.span.line > 5]


def test_a_break_speaks_instead_of_the_wait_and_takes_its_fix() -> None:
    assert codes("# eager") == [(6, "TPF101", False), (7, "TPF110", True)]
    assert codes("@torch.compile") == [(6, "TPF701", False), (7, "TPF704", True)]


def test_what_does_not_break_still_waits() -> None:
    assert codes("@torch.compile(fullgraph=True)") == [(6, "TPF101", False), (7, "TPF110", True)]
