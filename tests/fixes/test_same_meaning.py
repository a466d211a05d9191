"""Safe fixes mean what they say: code runs before and after them, and gives the same bit for bit.

What a case may return is told in `scenarios`. It runs on the device where there is one, else on the CPU,
and once more on a simulated GPU, which knows where each tensor would be and when the host would wait.
"""

from __future__ import annotations

import inspect
import sys

import pytest

from perflint.findings import WRITABLE, Safety
from perflint.output.pages import fix_safeties
from tests.fixes.scenarios import SAFE, Scenario, fixed, functions, leaves, runs, scenarios, verdict
from tests.rules.harness import Case, lint, parse_fixture, source_cases

CASES = source_cases()
SCENARIOS = scenarios(safe=True)
by_rule = pytest.mark.parametrize("case", CASES, ids=str, scope="session")
by_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)


def fixes_of(case: Case, safety: Safety) -> bool:
    """True if a rule makes a fix of some safety, in its fixture or by what its module says."""
    if f"Safety.{safety.name}" in inspect.getsource(sys.modules[case.rule.__module__]):
        return True
    findings = lint(parse_fixture(case.fixture.read_text(encoding="utf-8")).text, [case.rule], "audit")
    return any(finding.fix is not None and finding.fix.safety is safety for finding in findings)


@by_rule
def test_rules_with_safe_fixes_have_code_to_run(case: Case) -> None:
    if fixes_of(case, Safety.SAFE):
        assert runs(case).exists(), f"{case} has safe fixes: write {runs(case).name} with a case for each kind"
        assert functions(runs(case).read_text(encoding="utf-8"))
    else:
        assert not runs(case).exists(), f"{case} has no safe fix; {runs(case).name} proves nothing"


@by_rule
def test_the_page_names_the_safeties_of_the_fixes(case: Case) -> None:
    made = {safety for safety in WRITABLE if fixes_of(case, safety)}
    assert made == set(fix_safeties(case.rule())) - {Safety.DISPLAY}


@by_scenario
def test_same_meaning(scenario: Scenario) -> None:
    wrong = verdict(scenario)
    assert not wrong, wrong


@by_scenario
def test_same_meaning_on_a_simulated_gpu(scenario: Scenario, on_a_simulated_gpu: dict[str, str]) -> None:
    assert not on_a_simulated_gpu[str(scenario)], on_a_simulated_gpu[str(scenario)]


@pytest.mark.parametrize("case", [case for case in CASES if runs(case).exists()], ids=str)
def test_safe_fixes_keep_what_they_must(case: Case) -> None:
    before = runs(case).read_text(encoding="utf-8")
    assert functions(before, "kept_") == functions(fixed(case, before, SAFE), "kept_")


def test_leaves_see_every_bit() -> None:
    import torch

    zero, minus = torch.tensor([0.0]), torch.tensor([-0.0])
    assert dict(leaves("x", zero)) != dict(leaves("x", minus))
    assert dict(leaves("x", zero)) != dict(leaves("x", zero.double()))
    assert dict(leaves("x", zero)) != dict(leaves("x", zero.clone().requires_grad_()))
    assert dict(leaves("x", [zero])) != dict(leaves("x", (zero,)))
    assert dict(leaves("x", torch.tensor([float("nan")]))) == dict(leaves("x", torch.tensor([float("nan")])))
    layer, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    other.load_state_dict(layer.state_dict())
    assert dict(leaves("x", layer)) == dict(leaves("x", other))
    other(torch.ones(2)).sum().backward()
    assert dict(leaves("x", layer)) != dict(leaves("x", other))
    assert dict(leaves("x", 1)) != dict(leaves("x", 1.0)) != dict(leaves("x", True))
