"""Every rule gets a verdict from a run, or a reason why a run cannot decide it."""

from __future__ import annotations

from perflint.findings import Effect
from perflint.rules.registry import known_rules
from perflint.tracer.judges import bench
from perflint.tracer.judges.bench import judge_of, why_undecided
from perflint.tracer.verdicts import EXPERIMENT_CODES

_NO_REASON = why_undecided("TPF000")


def _is_judged(code: str, effect: Effect) -> bool:
    """True if a witness, an experiment or the waits of a trace may decide a finding."""
    return judge_of(code) is not None or code in EXPERIMENT_CODES or effect is Effect.SYNC


def test_every_rule_has_a_judge_or_a_reason() -> None:
    without = [
        rule.code
        for rule in known_rules()
        # The findings of these rules come from traces.
        if not rule.code.startswith("TPF19")
        and not _is_judged(rule.code, rule.effect)
        and why_undecided(rule.code) == _NO_REASON
    ]
    assert without == []


def test_judges_and_reasons_are_of_rules_that_exist() -> None:
    judges, reasons, elsewhere = bench._tables()
    assert {*judges, *reasons, *elsewhere} <= {rule.code for rule in known_rules()}


def test_reasons_are_clauses() -> None:
    _, reasons, _ = bench._tables()
    assert not [code for code, reason in reasons.items() if reason != reason.strip() or reason.endswith(".")]
