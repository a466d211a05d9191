"""The harness itself: it must not pass what it should fail."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from perflint.findings import Confidence, Effect, Finding, Heat, Severity, Span
from tests.rules.harness import compare, parse_fixture, silent_blocks


def finding(line: int, code: str = "TPF101") -> Finding:
    return Finding(
        "example.py",
        Span(line, 1, line, 2),
        code,
        "x",
        "said",
        Severity.WARNING,
        Confidence.HIGH,
        Heat.HOT,
        Effect.SYNC,
    )


def test_markers_are_read_and_removed() -> None:
    fixture = parse_fixture(
        "a = 1  # error: TPF101\nb = (2,  # why  # audit: TPF102, TPF102\n  3)\nc = '# error: TPF101'\n"
    )
    assert fixture.text == "a = 1\nb = (2,  # why\n  3)\nc = '# error: TPF101'\n"
    assert fixture.error == Counter({(1, "TPF101"): 1})
    assert fixture.audit == Counter({(2, "TPF102"): 2})
    assert fixture.marked == {1, 2}


def test_both_markers_on_a_line() -> None:
    fixture = parse_fixture("a = 1  # error: TPF101  # audit: TPF101\n")
    assert fixture.text == "a = 1\n"
    assert fixture.error == fixture.audit == Counter({(1, "TPF101"): 1})


def test_malformed_markers_are_reported() -> None:
    fixture = parse_fixture(
        "a = 1  # error TPF101\nb = 1  # errors: TPF101\nc = 1  # error: TPF1\nd = 1  # Audit: TPF101\n"
        "e = 1  # pedantic: TPF101\nf = 1  # noqa: TPF101\n"
    )
    assert len(fixture.malformed) == 5


def test_newlines_survive() -> None:
    assert parse_fixture("a = 1  # error: TPF101\n\n\tb\n".replace("\tb", "b = 2")).text == "a = 1\n\nb = 2\n"


def test_silent_blocks_are_top_level_and_unmarked() -> None:
    text = "import torch\nx = 1\ndef f():\n    def g(): pass\nclass C:\n    def m(self): pass\nfor i in x:\n    pass\n"
    assert silent_blocks(text, set()) == ["line 3: f", "line 5: C", "line 7: For"]
    assert silent_blocks(text, {4, 6}) == ["line 7: For"]


def test_compare_counts_each_finding() -> None:
    path = Path("x.py")
    assert compare(path, "a\nb\n", Counter({(1, "TPF101"): 1}), [finding(1)], "default") == []
    assert "unexpected 1 x TPF101" in compare(path, "a\nb\n", Counter({(1, "TPF101"): 1}), [finding(1)] * 2, "audit")[0]
    assert "missing 1 x TPF101" in compare(path, "a\nb\n", Counter({(2, "TPF101"): 1}), [], "audit")[0]
    assert compare(path, "a\n", Counter(), [finding(1, "TPF102")], "audit") != []
