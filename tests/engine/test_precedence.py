"""One rule speaks of each place: the most precise one that is selected, and the one with the gravest effect."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Confidence, Finding, Span
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


def findings(text: str, codes: Collection[str] = RULES) -> list[Finding]:
    source = Source("example.py", text)
    settings = Settings(profile=Profile.AUDIT)
    rules = RuleSet(rule for rule in all_rules() if rule.code in codes)
    report = check_source(source, Project([Path(source.path)]), rules, settings)
    assert not report.problems
    return report.findings


def codes(decorator: str) -> list[tuple[int, str, bool]]:
    found = findings(COMPILED.format(decorator=decorator))
    return [(each.span.line, each.code, each.fix is not None) for each in found if each.span.line > 5]


def test_a_precise_rule_replaces_the_general_one_at_its_expression() -> None:
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


def test_a_break_replaces_the_wait_and_takes_its_fix() -> None:
    assert codes("# eager") == [(6, "TPF101", False), (7, "TPF110", True)]
    assert codes("@torch.compile") == [(6, "TPF701", False), (7, "TPF704", True)]


def test_what_does_not_break_still_waits() -> None:
    assert codes("@torch.compile(fullgraph=True)") == [(6, "TPF101", False), (7, "TPF110", True)]


GUARD = """\
import torch

def clean(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    x = x.cuda()
    {statements}
    return x
"""
LOOP = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(8, 8)

    @torch.compile
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.cuda()
        for part in x.unbind():
            {statements}
        return x
"""
DRAWN = """\
import torch

def draw(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    p = model.cuda()(x.cuda()).softmax(-1)
    return torch.multinomial(p.cpu(), 1).to("cuda")
"""
LOSS = """\
import torch
import torch.nn.functional as F

def loss(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    logits, y = model.cuda()(x.cuda()), y.cuda()
    mask = y != -100
    return F.cross_entropy(logits[mask], y[mask])
"""
SAVED = """\
import torch
from torch.utils.data import DataLoader

def train(model: torch.nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()
        torch.save(model.state_dict(), "last.pt")
"""
MADE = """\
import torch

def made(numbers: list[float]) -> torch.Tensor:
    return {made}.to("cuda")
"""


def in_guard(statements: str) -> str:
    return GUARD.format(statements=statements)


def in_loop(statements: str) -> str:
    return LOOP.format(statements=statements)


RESUMED = """\
import torch


def resume(model, path):
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(torch.load(path, map_location="cuda"))
"""


PAIRS = {
    ("TPF103", "TPF101"): in_guard("print(sum(int(part) for part in x))"),
    ("TPF103", "TPF109"): in_guard("print([part.tolist() for part in x])"),
    ("TPF106", "TPF101"): in_guard("if (x > 1).any().item():\n        x[x > 1] = 1"),
    ("TPF106", "TPF105"): in_guard("if (x > 1).any():\n        x[x > 1] = 1"),
    ("TPF106", "TPF107"): in_guard("if (x != x).any():\n        x[x != x] = 0"),
    ("TPF107", "TPF101"): in_guard("print(torch.isnan(x).any().item())"),
    ("TPF107", "TPF103"): in_guard("import math\n    print([math.isnan(part.item()) for part in x])"),
    ("TPF107", "TPF105"): in_guard("assert not torch.isnan(x).any()"),
    ("TPF107", "TPF109"): in_guard("print(torch.isnan(x).tolist())"),
    ("TPF111", "TPF110"): LOSS,
    ("TPF116", "TPF201"): MADE.format(made="torch.tensor(0.5)"),
    ("TPF117", "TPF201"): MADE.format(made="torch.tensor(numbers)"),
    ("TPF121", "TPF105"): QUESTIONS,
    ("TPF125", "TPF101"): NORMS,
    ("TPF134", "TPF109"): DRAWN,
    ("TPF134", "TPF201"): DRAWN,
    ("TPF204", "TPF201"): MADE.format(made="torch.zeros(8)"),
    ("TPF608", "TPF964"): RESUMED,
    ("TPF963", "TPF109"): SAVED,
    ("TPF705", "TPF701"): in_loop("x = x + part.sum().item()"),
    ("TPF705", "TPF702"): in_loop("if part.sum() > 0:\n                x = x + 1"),
    ("TPF705", "TPF703"): in_loop("print(part.shape)"),
    ("TPF705", "TPF704"): in_loop("x = x + part[part > 0].sum()"),
    ("TPF705", "TPF706"): in_loop("part.sum().backward()"),
    ("TPF705", "TPF707"): in_loop("x = x + self.lstm(x)[0]"),
    ("TPF705", "TPF708"): in_loop("import time\n            x = x + time.time()"),
    ("TPF705", "TPF709"): in_loop("x = x + torch.zeros(part.sum())"),
}
"""For each precise rule and each rule that it replaces, code that both report."""
by_pair = pytest.mark.parametrize(("precise", "general"), PAIRS, ids=["-".join(pair) for pair in PAIRS])


def places(found: list[Finding]) -> set[Span]:
    return {place for each in found for place in (each.span, *each.parts)}


def of(code: str, found: list[Finding]) -> list[Finding]:
    return [each for each in found if each.code == code]


def test_each_pair_that_is_declared_has_an_example() -> None:
    assert set(PAIRS) == {(rule.code, code) for rule in all_rules() for code in rule.replaces}


def test_no_rule_replaces_itself_through_others() -> None:
    replaces = {rule.code: set(rule.replaces) for rule in all_rules()}
    for code in replaces:
        reached, waiting = set(), set(replaces[code])
        while waiting:
            reached.add(now := waiting.pop())
            waiting |= replaces[now] - reached
        assert code not in reached


@by_pair
def test_the_precise_rule_speaks_alone(precise: str, general: str) -> None:
    found = findings(PAIRS[precise, general], (precise, general))
    assert of(precise, found)
    assert places(of(precise, found)).isdisjoint(places(of(general, found)))


@by_pair
def test_the_general_rule_speaks_if_the_precise_one_is_off(precise: str, general: str) -> None:
    both = findings(PAIRS[precise, general], (precise, general))
    alone = findings(PAIRS[precise, general], (general,))
    assert places(alone) & places(of(precise, both))
    assert {each.span for each in alone} >= {each.span for each in of(general, both)}


@by_pair
def test_a_finding_that_a_comment_silences_still_replaces(precise: str, general: str) -> None:
    text = PAIRS[precise, general]
    both = findings(text, (precise, general))
    lines = text.splitlines()
    for line in {each.span.end_line for each in of(precise, both)}:
        lines[line - 1] += f"  # perflint: ignore[{precise}]"
    silenced = findings("\n".join(lines) + "\n", (precise, general))
    assert [each.span for each in silenced] == [each.span for each in of(general, both)]


@by_pair
def test_a_rule_that_is_ignored_for_a_file_replaces_nothing(precise: str, general: str) -> None:
    text = PAIRS[precise, general]
    source = Source("example.py", text)
    settings = Settings(profile=Profile.AUDIT, per_file_ignores=(("example.py", (precise,)),))
    rules = RuleSet(rule for rule in all_rules() if rule.code in (precise, general))
    report = check_source(source, Project([Path(source.path)]), rules, settings)
    assert report.findings == findings(text, (general,))


def test_the_most_precise_of_three_speaks() -> None:
    text = PAIRS["TPF106", "TPF107"]
    every = ("TPF105", "TPF106", "TPF107")
    spoken = [{each.code for each in findings(text, every[:count]) if each.span.line == 5} for count in (1, 2)]
    assert spoken == [{"TPF105"}, {"TPF106"}]
    assert {each.code for each in findings(text, ("TPF105", "TPF107"))} == {"TPF107"}
    assert {each.code for each in findings(text, every)} == {"TPF106"}


def test_a_general_rule_keeps_its_other_places() -> None:
    text = in_guard("print(sum(int(part) for part in x), x.sum().item())")
    assert [each.code for each in findings(text, ("TPF101", "TPF103"))] == ["TPF103", "TPF101"]
