"""One claim for each place."""

from __future__ import annotations

from pathlib import Path

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Confidence, Finding
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source

RULES = ("TPF101", "TPF105", "TPF110", "TPF121", "TPF125", "TPF701", "TPF704")
COMPILED = """\
import torch

{decorator}
def step(x: torch.Tensor) -> torch.Tensor:
    x = x.cuda()
    scale = x.max().item()
    x[torch.where(x > 0)] = 0.0
    return x * scale
"""


NORMS = """\
import torch

def norm(model: torch.nn.Module, loss: torch.Tensor) -> float:
    total = 0.0
    for p in model.cuda().parameters():
        total += p.grad.norm(2).item() ** 2
        print(loss.cuda().item())
    return total
"""
QUESTIONS = """\
import torch

def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    a, b = a.cuda(), b.cuda()
    if torch.is_nonzero(a.sum()):
        return False
    return bool(a.sum()) or torch.equal(a, b)
"""


def findings(text: str, codes: tuple[str, ...] = RULES) -> list[Finding]:
    source = Source("example.py", text)
    settings = Settings(profile=Profile.AUDIT)
    rules = RuleSet(rule for rule in all_rules() if rule.code in codes)
    report = check_source(source, Project([Path(source.path)]), rules, settings)
    assert not report.problems
    return report.findings


def codes(decorator: str) -> list[tuple[int, str, bool]]:
    found = findings(COMPILED.format(decorator=decorator))
    return [(each.span.line, each.code, each.fix is not None) for each in found if each.span.line > 5]


def test_a_precise_rule_speaks_instead_of_the_general_one_at_its_expression() -> None:
    assert [(each.span.line, each.code) for each in findings(NORMS)] == [(6, "TPF125"), (7, "TPF101")]
    assert [(each.span.line, each.code) for each in findings(QUESTIONS)] == [
        (5, "TPF121"),
        (7, "TPF105"),
        (7, "TPF121"),
    ]


def test_the_precise_claim_is_as_sure_as_the_general_one() -> None:
    (general,) = [each for each in findings(NORMS, ("TPF101",)) if each.span.line == 6]
    (precise,) = [each for each in findings(NORMS) if each.span.line == 6]
    assert (general.code, precise.span) == ("TPF101", general.span)
    assert precise.confidence is general.confidence is Confidence.HIGH
    (alone,) = findings(NORMS, ("TPF125",))
    assert alone.confidence is Confidence.MEDIUM


def test_a_break_speaks_instead_of_the_wait_and_takes_its_fix() -> None:
    assert codes("# eager") == [(6, "TPF101", False), (7, "TPF110", True)]
    assert codes("@torch.compile") == [(6, "TPF701", False), (7, "TPF704", True)]


def test_what_does_not_break_still_waits() -> None:
    assert codes("@torch.compile(fullgraph=True)") == [(6, "TPF101", False), (7, "TPF110", True)]
