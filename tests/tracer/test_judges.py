"""Every rule gets a verdict from a run, or a reason why a run cannot decide it."""

from __future__ import annotations

import re
from pathlib import Path

from perflint.findings import Effect, Span
from perflint.rules.registry import known_rules
from perflint.source.text import Source
from perflint.tracer.judges import bench
from perflint.tracer.judges.base import function_around
from perflint.tracer.judges.bench import judge_of, why_undecided
from perflint.tracer.verdicts import EXPERIMENT_CODES

_NO_REASON = why_undecided("TPF000")
ONE_SIDE = {
    "TPF122": "each call of a watched function is a wait, so that a run refutes no finding",
    "TPF203": "pinning in place was never slower when it was measured, so that a run confirms no cost",
    "TPF710": "a result that lives on may still be called, so that a run refutes no finding",
    "TPF505": "a trace does not record what is dropped",
    "TPF715": "a trace does not record the backend of the compiler",
    "TPF716": "a trace records the calls of the compiler, and not those that pass it by",
    "TPF802": "a replay shows which work a CUDA graph lacks; the simulation records no CUDA graphs",
    "TPF803": "a replay shows which memory it reads; the simulation records no CUDA graphs",
    "TPF804": "the call raises on a GPU and records nothing; the simulation records no CUDA graphs",
    "TPF805": "a replay shows what it overwrites; the simulation records no CUDA graphs",
    "TPF807": "only a compiler for a GPU makes CUDA graphs, and names the line for which it makes none",
    "TPF810": "a replay shows which memory it reads; the simulation records no CUDA graphs",
    "TPF924": "each collective of several processes is a wait, so that a run refutes no finding",
    "TPF927": "a trace is of one process, and does not compare its parameters with those of others",
    "TPF944": "each collective of several processes is a wait, so that a run refutes no finding",
    "TPF945": "a trace does not show the type that packed weights compute in",
    "TPF311": "a trace does not show the kernels of attention",
    "TPF312": "a trace does not show the kernels of attention",
    "TPF313": "a trace does not show which rows of a product are used",
    "TPF314": "a trace does not show the kernels of attention",
    "TPF946": "a trace does not show the items of a pipeline",
    "TPF928": "a trace is of one process",
    "TPF929": "a trace is of one process",
    "TPF930": "a trace does not record the backend of a group",
    "TPF931": "a trace does not record what is gathered",
    "TPF215": "a trace does not show when a copy ends",
    "TPF811": "a replay shows what it does not run; the simulation records no CUDA graphs",
    "TPF812": "the capture raises on a GPU; the simulation records no CUDA graphs",
    "TPF315": "a trace does not show the kernels of attention",
    "TPF316": "a trace does not time block masks",
    "TPF609": "a trace does not count the groups of an optimizer",
    "TPF947": "a trace does not show the kernels of quantized layers",
    "TPF317": "a trace does not compare the inputs of two calls",
    "TPF318": "a trace does not follow a tensor from call to call",
    "TPF932": "a trace is of one process",
    "TPF933": "a trace is of one process",
    "TPF359": "a trace does not record gradients",
    "TPF360": "a trace does not record where autocast ends",
    "TPF408": "the processes of workers are not traced",
    "TPF409": "the memory of workers is not traced",
    "TPF934": "a trace does not record what is gathered",
    "TPF935": "a trace does not record which gradients are views",
    "TPF813": "the simulation records no CUDA graphs",
    "TPF815": "the simulation records no CUDA graphs",
    "TPF816": "the simulation records no CUDA graphs",
    "TPF817": "the capture raises on a GPU; the simulation records no CUDA graphs",
    "TPF814": "only a compiler for a GPU makes CUDA graphs",
    "TPF948": "a trace does not record the caches of transformers",
    "TPF949": "a trace does not record what a trainer keeps",
    "TPF951": "a trace does not know the settings of a pipeline",
    "TPF964": "a trace does not record the memory of a checkpoint",
    "TPF717": "a simulated run compiles nothing",
    "TPF907": "a trace does not read the switches of TF32 by their names",
    "TPF906": "a trace does not know which API made a module",
    "TPF950": "a trace does not record the formats of products",
    "TPF319": "a trace does not record the peak of the memory by line",
    **dict.fromkeys(("TPF981", "TPF982", "TPF983"), "no run shows comments"),
}
"""The rules without a confirmed and a refuted case in the tests of the witnesses, with the reason."""

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
        if not rule.code.startswith(("TPF19", "TPF99"))
        and not _is_judged(rule.code, rule.effect)
        and why_undecided(rule.code) == _NO_REASON
    ]
    assert without == []


def test_judges_and_reasons_are_of_rules_that_exist() -> None:
    judges, reasons, elsewhere = bench._tables()
    assert {*judges, *reasons, *elsewhere} <= {rule.code for rule in known_rules()}


def test_each_judge_has_a_reason_for_runs_without_evidence() -> None:
    judges, _, _ = bench._tables()
    assert [code for code in judges if why_undecided(code) == _NO_REASON] == []


def test_reasons_are_clauses() -> None:
    _, reasons, _ = bench._tables()
    assert not [code for code, reason in reasons.items() if reason != reason.strip() or reason.endswith(".")]


def test_each_judge_is_tested_on_both_sides_or_has_a_reason() -> None:
    judges, reasons, _ = bench._tables()
    tests = (Path(__file__).parent / "witnesses").glob("test_*.py")
    tested = {code for path in tests for code in re.findall(r"TPF\d{3}", path.read_text(encoding="utf-8"))}
    assert {*judges, *reasons} - tested <= ONE_SIDE.keys() <= {*judges, *reasons}


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
