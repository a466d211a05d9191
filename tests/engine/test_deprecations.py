"""Deprecated names are reported once in a file, and only if the project states a torch that warns."""

from __future__ import annotations

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Finding, Ruling, Verdict
from perflint.frozen import replace
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.cli.command import Command

OLD = """import torch

scaler = torch.cuda.amp.GradScaler()


def train(model, batches):
    for batch in batches:
        with torch.cuda.amp.autocast():
            model(batch)
        with torch.cuda.amp.autocast(enabled=False):
            model(batch)
"""
NEW = OLD.replace("cuda.amp.GradScaler()", 'amp.GradScaler("cuda")')
NEW = NEW.replace("cuda.amp.autocast()", 'amp.autocast("cuda", dtype=torch.float16)')
NEW = NEW.replace("cuda.amp.autocast(enabled=False)", 'amp.autocast("cuda", enabled=False)')
SILENCED = "  # perflint: ignore[TPF902] other releases run this, too\n"
OTHERS = """import torch
from torch.backends.cuda import sdp_kernel


@torch.jit.script
def gelu(x):
    return x * torch.erf(x)


@torch.jit.script
def attend(attention, x):
    with sdp_kernel(enable_flash=True, enable_math=False, enable_mem_efficient=False):
        x = attention(x)
    with sdp_kernel(enable_flash=True, enable_math=False, enable_mem_efficient=False):
        return attention(x)


def loaders(first, second):
    yield torch.utils.data.DataLoader(first, pin_memory=True, pin_memory_device="cuda")
    yield torch.utils.data.DataLoader(second, pin_memory=True, pin_memory_device="cuda")
"""


def lines(perflint: Command, *options: str) -> list[int]:
    """The lines of the findings."""
    out = perflint("check", "a.py", "--select=TPF9", "--output-format=concise", *options).out
    return [int(line.split(":")[1]) for line in out.splitlines()]


@pytest.mark.parametrize(
    ("stated", "default"),
    [("", []), ("torch\n", []), ("torch>=2.1\n", []), ("torch>=2.4\n", [3]), ("torch==2.9.1\n", [3])],
)
def test_a_stated_torch_decides(perflint: Command, stated: str, default: list[int]) -> None:
    perflint.write("requirements.txt", stated)
    perflint.write("a.py", OLD)
    assert lines(perflint) == default
    assert lines(perflint, "--profile=pedantic") == ([] if "2.1" in stated else [3, 8, 10])
    assert lines(perflint, "--torch-version=2.4") == [3]


def test_each_deprecation_is_shown_once(perflint: Command) -> None:
    perflint.write("a.py", OTHERS)
    assert lines(perflint) == []
    assert lines(perflint, "--torch-version=2.13") == [5, 12, 19]


def test_the_fix_changes_all_places(perflint: Command) -> None:
    perflint.write("a.py", OLD)
    options = ("fix", "a.py", "--apply", "--select=TPF902")
    assert perflint(*options).code == 0 and (perflint.folder / "a.py").read_text() == OLD
    perflint(*options, "--torch-version=2.4")
    assert (perflint.folder / "a.py").read_text() == NEW


def test_silenced_places_stay(perflint: Command) -> None:
    text = OLD.replace("GradScaler()\n", f"GradScaler(){SILENCED}")
    perflint.write("a.py", text.replace("autocast():\n", f"autocast():{SILENCED}"))
    assert lines(perflint, "--torch-version=2.4") == [10]
    perflint("fix", "a.py", "--apply", "--select=TPF902", "--torch-version=2.4")
    fixed = (perflint.folder / "a.py").read_text()
    assert fixed.count("torch.cuda.amp") == 2 and 'torch.amp.autocast("cuda", enabled=False)' in fixed


def test_explain_says_the_same(perflint: Command) -> None:
    perflint.write("a.py", OLD)
    assert "severity is info" in perflint("explain", "a.py:3").out
    assert "severity is info" not in perflint("explain", "a.py:3", "--torch-version=2.4").out
    assert "severity is info" in perflint("explain", "a.py:8", "--torch-version=2.4").out


def test_a_trace_shows_the_first_that_ran() -> None:
    source = Source("a.py", OLD)
    rules = RuleSet([rule for rule in all_rules() if rule.code == "TPF902"])

    def judge(_: Source, findings: list[Finding]) -> list[Finding]:
        ran = Verdict(Ruling.CONFIRMED, "the code ran under torch 2.9, which deprecates it")
        return [each if each.span.line == 3 else replace(each, verdict=ran) for each in findings]

    report = check_source(source, Project([]), rules, Settings(profile=Profile.DEFAULT), judge=judge)
    assert [finding.span.line for finding in report.findings] == [8]
