"""Which fixes of rules are offered, and with which safety."""

from __future__ import annotations

import pytest

from perflint.config.settings import Version
from perflint.engine.offers import offered
from perflint.findings import Confidence, Edit, Effect, Fix, Safety, Span
from perflint.frozen import replace
from tests.output.reports import finding

PLACE = Span(2, 11, 2, 30)


def not_scripted(line: int) -> bool:
    """No line is compiled by TorchScript."""
    return False


def got(
    safety: Safety,
    confidence: Confidence = Confidence.HIGH,
    since: Version | None = None,
    torch_version: Version | None = None,
    proof: str | None = None,
) -> tuple[Safety, str]:
    """The safety and the message with which a fix is offered."""
    fix = Fix("Pass it", safety, (Edit(PLACE, "x"),), since=since, proof=proof)
    made = offered(finding(PLACE, fix=fix, confidence=confidence), torch_version, not_scripted).fix
    assert made is not None and (made.edits, made.since) == (fix.edits, since)
    return made.safety, made.message


@pytest.mark.parametrize("confidence", [Confidence.MEDIUM, Confidence.LOW])
def test_a_risky_fix_needs_certainty_or_proof(confidence: Confidence) -> None:
    assert got(Safety.RISKY, Confidence.HIGH)[0] is Safety.RISKY
    assert got(Safety.RISKY, confidence)[0] is Safety.DISPLAY
    assert got(Safety.RISKY, confidence, proof="both are in the same function")[0] is Safety.RISKY
    assert got(Safety.UNSAFE, confidence)[0] is Safety.UNSAFE
    assert got(Safety.SAFE, confidence)[0] is Safety.SAFE


@pytest.mark.parametrize(("effect", "safety"), [(Effect.SYNC, Safety.DISPLAY), (Effect.CORRECTNESS, Safety.SAFE)])
def test_a_fix_that_only_saves_time_is_not_written_into_tests(effect: Effect, safety: Safety) -> None:
    fix = Fix("Pass it", Safety.SAFE, (Edit(PLACE, "x"),))
    found = replace(finding(PLACE, fix=fix, confidence=Confidence.HIGH), effect=effect)
    made = offered(found, None, not_scripted, in_tests=True).fix
    assert made is not None and made.safety is safety
    assert offered(replace(found, fix=None), None, not_scripted, in_tests=True).fix is None


VERSIONS = [
    # Which torch has the API, which one the project allows, and what becomes of safe and unsafe fixes.
    (None, None, Safety.SAFE, Safety.UNSAFE),
    (None, (1, 4), Safety.SAFE, Safety.UNSAFE),
    ((1, 11), None, Safety.SAFE, Safety.UNSAFE),
    ((1, 12), None, Safety.UNSAFE, Safety.UNSAFE),
    ((2, 3), (2, 3), Safety.SAFE, Safety.UNSAFE),
    ((2, 3), (2, 10), Safety.SAFE, Safety.UNSAFE),
    ((2, 3), (2, 2), Safety.DISPLAY, Safety.DISPLAY),
    ((1, 9), (1, 8), Safety.DISPLAY, Safety.DISPLAY),
]


@pytest.mark.parametrize(("since", "torch_version", "safe", "unsafe"), VERSIONS)
def test_a_fix_needs_its_torch(
    since: Version | None, torch_version: Version | None, safe: Safety, unsafe: Safety
) -> None:
    assert got(Safety.SAFE, since=since, torch_version=torch_version)[0] is safe
    assert got(Safety.UNSAFE, since=since, torch_version=torch_version)[0] is unsafe


def test_the_message_says_which_torch_is_missing() -> None:
    assert got(Safety.SAFE, since=(1, 12)) == (Safety.UNSAFE, "Pass it (needs torch ≥ 1.12)")
    assert got(Safety.UNSAFE, since=(2, 3)) == (Safety.UNSAFE, "Pass it (needs torch ≥ 2.3)")
    assert got(Safety.UNSAFE, since=(1, 11)) == (Safety.UNSAFE, "Pass it")
    assert got(Safety.SAFE, since=(2, 3), torch_version=(2, 4)) == (Safety.SAFE, "Pass it")
    assert got(Safety.UNSAFE, since=(2, 10), torch_version=(2, 4)) == (Safety.DISPLAY, "Pass it (needs torch ≥ 2.10)")


def test_a_finding_without_a_fix_stays_as_it_is() -> None:
    bare = finding(PLACE)
    assert offered(bare, (1, 4), not_scripted) is bare


def test_no_fix_writes_what_torchscript_may_compile() -> None:
    fix = Fix("Pass it", Safety.SAFE, (Edit(PLACE, "x"), Edit(Span(7, 1, 7, 2), "y")))
    made = finding(PLACE, fix=fix)
    assert offered(made, None, lambda line: line == 3).fix is fix
    assert offered(made, None, lambda line: line == 7).fix is None
