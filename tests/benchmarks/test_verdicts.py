"""The sentences about the verdicts of runs on the pages of the rules."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from perflint.rules.registry import known_rules

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "accuracy"))

from verdicts import PUBLIC, SIMULATED, public, simulated


def _scored(ran: int = 0, happened: int = 0, found: int = 0, **rulings: int) -> dict[str, Any]:
    return {"ran": ran, "rulings": rulings, "happened": happened, "found": found}


def _sentence(rule: dict[str, Any]) -> str | None:
    return simulated({"packages": ["a 1.0", "b 2.0"], "rules": {"TPF101": rule}}).get("TPF101")


def test_the_scores_of_the_simulation_in_words() -> None:
    assert _sentence(_scored(ran=1, refuted=1)) == "Simulated: 1 finding ran in the tests of 2 packages: 1 refuted."
    said = "Simulated: 3 findings ran in the tests of 2 packages: 2 confirmed, 1 refuted; "
    both = _scored(ran=3, confirmed=2, refuted=1, happened=4, found=2)
    assert _sentence(both) == f"{said}a trace confirms 4 places, 2 with a finding."
    said = "Simulated: 0 findings ran in the tests of 2 packages; a trace confirms 1 place, 0 with a finding."
    assert _sentence(_scored(happened=1)) == said


def test_a_rule_without_evidence_has_no_sentence() -> None:
    assert _sentence(_scored()) is None


def test_the_verdicts_of_public_programs_in_words() -> None:
    rulings = ("confirmed", "refuted", "confirmed, no cost", "confirmed", "not executed", None)
    findings = [{"code": "TPF101", "ruling": ruling} for ruling in rulings]
    document = {"gpus": ["NVIDIA H200"], "programs": {"a": {}}, "findings": findings}
    said = "4 findings ran in 1 public program: 2 confirmed, 1 confirmed without a cost, 1 refuted."
    assert public(document) == {"TPF101": f"On an NVIDIA H200: {said}"}


def test_the_results_are_of_rules_that_exist() -> None:
    codes = {rule.code for rule in known_rules()}
    for path, of_rules in ((SIMULATED, simulated), (PUBLIC, public)):
        found = of_rules(json.loads(path.read_text(encoding="utf-8")))
        assert found and codes.issuperset(found)
