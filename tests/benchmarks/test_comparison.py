"""The comparison with other static tools: the places of its samples, and perflint's own rows."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def _load() -> ModuleType:
    path = ROOT / "benchmarks" / "comparison" / "run.py"
    spec = importlib.util.spec_from_file_location("comparison_run", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["comparison_run"] = module
    spec.loader.exec_module(module)
    return module


comparison = _load()
MARKS = comparison.marks()


@pytest.mark.parametrize("tool", comparison.PERFLINT, ids=lambda tool: tool.name)
def test_own_row_is_that_of_the_page(tool: object) -> None:
    places = comparison.reported([sys.executable, "-m", *tool.command])  # type: ignore[attr-defined]
    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    assert comparison.row(tool.name, places, MARKS) in page  # type: ignore[attr-defined]


def test_marks() -> None:
    assert len(MARKS["problem"]) == 24 and len(MARKS["fine"]) == 17
    assert MARKS["problem"]["train.py", 44] == "a wait in each step"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("samples/model.py:45:13: TOR003 [*] Please pass", {("model.py", 45)}),
        ("a/train.py:46:8: W8201: Consider (loop-invariant-statement)", {("train.py", 46)}),
        ("train.py:16:14: TPF204 [*] `x`", {("train.py", 16)}),
        ("/a/samples/model.py\n  [WARNING] $$$ KP003 line 55: .item() inside\n", {("model.py", 55)}),
        ("--- /a/model.py\n+++ /a/model.py\n@@ -40,11 +40,11 @@\nFound 1 error.", set()),
    ],
)
def test_places_in_the_output_of_tools(text: str, places: set[tuple[str, int]]) -> None:
    assert comparison.places_in(text) == places
