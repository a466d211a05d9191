"""Every rule gets a verdict from a run, or a reason why a run cannot decide it."""

from __future__ import annotations

from perflint.findings import Effect, Span
from perflint.rules.registry import known_rules
from perflint.source.text import Source
from perflint.tracer.judges import bench
from perflint.tracer.judges.base import function_around
from perflint.tracer.judges.bench import judge_of, why_undecided
from perflint.tracer.verdicts import EXPERIMENT_CODES

_NO_REASON = why_undecided("TPF000")

FUNCTIONS = Source(
    "train.py",
    """\
top = 1
def outer():
    def inner():
        return deep()
    return map(lambda row: row.cpu(), rows()), last()
""",
)


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


def _around(text: str, lambdas: bool = False) -> str:
    """The first line of the function around some text of the functions."""
    line, row = next((number, row) for number, row in enumerate(FUNCTIONS.lines, 1) if text in row)
    column = row.index(text) + 1
    span = function_around(FUNCTIONS, Span(line, column, line, column + len(text)), lambdas)
    return FUNCTIONS.segment(span).splitlines()[0]


def test_the_function_around_is_the_innermost_one() -> None:
    assert _around("deep()") == "def inner():"
    assert _around("rows()") == "def outer():"
    assert _around("top") == "top = 1"


def test_lambdas_count_as_functions_if_asked() -> None:
    assert _around("row.cpu()") == "def outer():"
    assert _around("row.cpu()", lambdas=True) == "lambda row: row.cpu()"
    assert _around("last()", lambdas=True) == "def outer():"
