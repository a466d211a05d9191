"""The sentences of each rule on its fixture, against the file beside it."""

from __future__ import annotations

import difflib
import re

import pytest

from perflint.findings import Finding
from tests.rules.harness import Case, lint, parse_fixture, source_cases

CASES = source_cases()
OLD_DIALECT = re.compile(
    r"\b(the host|nobody|somebody|seldom|told by|hands on|for good|anew|(is|are) no [a-z]+)\b"
    r"|in code that runs each step"
)


def words(findings: list[Finding]) -> str:
    """The sentences on findings; of those that were said before, only the message is written again."""
    lines: list[str] = []
    said: set[str] = set()
    for finding in findings:
        lines.append(f"{finding.span.line} {finding.severity.value}: {finding.message}")
        fix = f"({finding.fix.safety.value}) {finding.fix.message}" if finding.fix is not None else None
        for label, text in (("why", finding.why), ("help", finding.help), ("fix", fix), ("cost", finding.cost)):
            line = f"    {label}: {text}"
            if text and line not in said:
                said.add(line)
                lines.append(line)
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("case", CASES, ids=str, scope="session")
def test_words(case: Case, update_golden: bool) -> None:
    findings = lint(parse_fixture(case.fixture.read_text(encoding="utf-8")).text, [case.rule], "audit")
    path = case.fixture.with_suffix(".words.txt")
    said = words(findings)
    if update_golden:
        path.write_text(said, encoding="utf-8", newline="")
        return
    assert path.exists(), f"run pytest --update-golden and read {path.name}"
    golden = path.read_text(encoding="utf-8")
    diff = difflib.unified_diff(golden.splitlines(True), said.splitlines(True), "golden", "said")
    assert said == golden, "\n" + "".join(diff)


def test_words_are_those_of_the_field() -> None:
    for case in CASES:
        said = case.fixture.with_suffix(".words.txt").read_text(encoding="utf-8")
        assert not OLD_DIALECT.findall(re.sub(r"`[^`]*`", "", said)), case


def test_a_sentence_that_was_said_is_not_written_again() -> None:
    (case,) = [case for case in CASES if str(case) == "sync/scalar_read_in_loop"]
    lines = case.fixture.with_suffix(".words.txt").read_text(encoding="utf-8").splitlines()
    costs = [line for line in lines if line.startswith("    cost: ")]
    assert len(costs) == 1 < len([line for line in lines if not line.startswith(" ")])
