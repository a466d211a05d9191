"""What is said of findings that are shown: severity, reason, cost and group."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.engine.severity import severity_at
from perflint.findings import Confidence, Finding, Heat, Ruling, Severity, Verdict
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.output.reports import FINDINGS

HOT, WARM, COLD = Heat.HOT, Heat.WARM, Heat.COLD
HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW


def found(text: str, code: str, profile: Profile = Profile.DEFAULT) -> list[Finding]:
    """The findings of one rule in a file."""
    rules = RuleSet(rule for rule in all_rules() if rule.code == code)
    source = Source("example.py", text)
    report = check_source(source, Project([Path(source.path)]), rules, Settings(profile=profile))
    assert not report.problems
    return report.findings


def whys(text: str, code: str = "TPF101", profile: Profile = Profile.DEFAULT) -> list[str | None]:
    return [finding.why for finding in found("import torch\n" + text, code, profile)]


# Severity


@pytest.mark.parametrize(
    ("heat", "confidence", "expected"),
    [
        (HOT, HIGH, Severity.ERROR),
        (HOT, MEDIUM, Severity.WARNING),
        (WARM, HIGH, Severity.WARNING),
        (HOT, LOW, Severity.INFO),
        (COLD, HIGH, Severity.INFO),
    ],
)
def test_only_hot_and_certain_code_is_an_error(heat: Heat, confidence: Confidence, expected: Severity) -> None:
    finding = replace(FINDINGS[0], severity=Severity.ERROR, heat=heat, confidence=confidence)
    assert severity_at(finding) is expected


def test_a_place_is_never_worse_than_its_rule() -> None:
    order = [Severity.INFO, Severity.WARNING, Severity.ERROR]
    for heat, confidence, severity in itertools.product(Heat, Confidence, Severity):
        finding = replace(FINDINGS[0], severity=severity, heat=heat, confidence=confidence)
        assert order.index(severity_at(finding)) <= order.index(severity)


@pytest.mark.parametrize(("share", "expected"), [(0.3, "error"), (0.05, "warning"), (0.01, "info")])
def test_what_a_trace_measured_decides(share: float, expected: str) -> None:
    verdict = Verdict(Ruling.CONFIRMED, "seen", ms=1.0, share=share)
    finding = replace(FINDINGS[0], severity=Severity.WARNING, heat=COLD, confidence=LOW, verdict=verdict)
    assert severity_at(finding).value == expected


# Reasons


def test_why_of_a_parameter_in_a_loop() -> None:
    text = """
def train(model, loader, optimizer, scale: torch.Tensor):
    for x, y in loader:
        model(x).sum().backward()
        optimizer.step()
        print(scale.item())
"""
    assert whys(text) == [
        "`scale`: annotated `torch.Tensor`, assumed on the GPU; "
        "the loop on line 4 iterates over the batches of `loader`"
    ]


def test_why_of_a_loop_that_runs_a_model() -> None:
    text = """
model = torch.nn.Linear(8, 8).cuda()
for _ in range(100):
    loss = model(torch.ones(8, device="cuda")).sum()
    print(loss.item())
"""
    assert whys(text) == [
        "`loss`: computed from the result of `model(…)` on line 5, on the GPU; the loop on line 4 runs `model`"
    ]


def test_why_of_a_function_without_callers() -> None:
    assert whys("\ndef norm(x: torch.Tensor):\n    return x.norm().item()\n", profile=Profile.AUDIT) == [
        "`x`: annotated `torch.Tensor`, assumed on the GPU; no call of `norm` in this file"
    ]


def test_why_of_names_that_the_file_does_not_bind() -> None:
    text = """
for x, y in loader:
    loss = model(x.to("cuda")).sum()
    print(loss.item())
"""
    assert whys(text, "TPF201") == [
        "`x`: comes from `loader`, which is not bound in this file, on the CPU; the loop on line 3 runs `model`"
    ]
    (why,) = whys(text, "TPF101")
    assert why is not None and why.startswith("`loss`: unknown, taken for a tensor because of `.item()`; ")


def test_why_of_guarded_code() -> None:
    text = """
def train(model, loader, optimizer):
    for step, x in enumerate(loader):
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(loss.item())
"""
    (why,) = whys(text, profile=Profile.AUDIT)
    assert why is not None and why.endswith("; runs only now and then: `step % 100 == 0` on line 8")


# Costs


def test_cost_is_one_sentence_with_its_conditions() -> None:
    text = "\ndef f(x: torch.Tensor):\n    return x.item()\n"
    (finding,) = found("import torch\n" + text, "TPF101", Profile.AUDIT)
    assert finding.cost == (
        "Measured on an H200 (bf16): once per step it costs GPT-2 training about 3%, "
        "about 11% if 2 ms of CPU work follows."
    )


# Groups

TWO_COPIES = """
import torch


def train(model, loader, optimizer, device, other: torch.Tensor):
    for x, y in loader:
        x = x.to(device)
        y = y.to(device)
        loss = model(x).sum() + y.sum()
        loss.backward()
        optimizer.step()
"""


def test_findings_of_one_batch_have_one_group() -> None:
    first, second = found(TWO_COPIES, "TPF201")
    assert first.group is not None and first.group == second.group


def test_findings_with_nothing_in_common_have_none() -> None:
    text = """
import torch


def train(model, loader, optimizer):
    for x in loader:
        loss = model(x.cuda(non_blocking=True)).sum()
        loss.backward()
        optimizer.step()
        print(loss.item())


def second(weight: torch.Tensor):
    return weight.item()


def third(weight: torch.Tensor, bias: torch.Tensor):
    return weight.item(), bias.abs()
"""
    groups = [finding.group for finding in found(text, "TPF101", Profile.AUDIT)]
    assert groups == [None, None, None]


HALF = """
import torch

def send(x: torch.Tensor, y: torch.Tensor):
    for _ in range(1000):
        {test}
            print(x.cuda().sum().item())
"""


@pytest.mark.parametrize(
    ("test", "is_doubted"),
    [
        ("if x.dtype == torch.float16:", True),
        ("if x.dtype is torch.half and y is not None:", True),
        ("if y is not None and x.dtype == torch.float16:", True),
        ("if x.dtype != torch.float16:", False),
        ("if x.dtype == torch.float32:", False),
        ("if y.shape:", False),
        ("if x.dtype == torch.float16 and print(x.cuda().sum().item()):", True),
    ],
)
def test_code_for_half_precision_alone_is_doubted(test: str, is_doubted: bool) -> None:
    confidences = {finding.confidence for finding in found(HALF.format(test=test), "TPF101", Profile.AUDIT)}
    assert (LOW in confidences) is is_doubted


def test_a_finding_in_a_lambda_belongs_to_the_function_around_it() -> None:
    text = """
import torch

def outer():
    return [(lambda x: (lambda: x.cuda().sum().item()))(torch.ones(3)) for _ in range(3)]

key = lambda x: x.cuda().sum().item()
"""
    assert {finding.function for finding in found(text, "TPF101", Profile.AUDIT)} == {"outer", None}
