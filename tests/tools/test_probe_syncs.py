"""The probes' bookkeeping; what a GPU does is for the tool itself to find."""

from __future__ import annotations

import tomllib
import warnings
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest

from tests.tools.loading import load_tool

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load_tool("probe_syncs")


def test_counts_the_warnings_of_the_mode_alone(tool: ModuleType) -> None:
    def call() -> str:
        for text in (tool.MESSAGE, "other", tool.MESSAGE):
            warnings.warn(text, stacklevel=1)
        return "result"

    assert tool.syncs_of(call) == (2, "result")


def test_tells_what_splits_the_samples(tool: ModuleType) -> None:
    given, plain = frozenset({"minlength given", "input is int64"}), frozenset({"input is int64"})
    facts = tool.summary([(1, plain), (2, plain), (0, given)])
    assert (facts["samples"], facts["synchronised"], facts["most"]) == (3, 2, 2)
    assert "when" not in facts
    assert facts["unless"] == ["minlength given"]
    assert tool.summary([(0, plain)]) == {"samples": 1, "synchronised": 0}


def test_a_feature_of_only_some_clean_samples_explains_nothing(tool: ModuleType) -> None:
    facts = tool.summary([(1, frozenset("a")), (0, frozenset("b")), (0, frozenset("c"))])
    assert facts["when"] == ["a"]
    assert "unless" not in facts


def test_every_statement_runs_on_the_host_or_says_why_not(tool: ModuleType) -> None:
    snippets = tool.parse(tool.SNIPPETS)
    assert len(snippets) > 200
    assert {snippet.belief for snippet in snippets} == {"yes", "no", "?"}
    for snippet in snippets:
        compile(snippet.statement, "<snippet>", "exec")
        compile(snippet.before, "<snippet>", "exec")


def test_time_limit(tool: ModuleType) -> None:
    with pytest.raises(tool.OutOfTime), tool.limit(0.05):
        while True:
            pass


def operator(names: list[str], **ways: dict[str, Any]) -> dict[str, Any]:
    return {"names": names, **ways}


def test_table(tool: ModuleType) -> None:
    document = {
        "torch": "2.11.0+cu130",
        "gpu": "NVIDIA H200",
        "date": "2026-01-01",
        "snippets": [
            {"group": "Reads", "statement": "x.sum().item()", "belief": "yes", "syncs": 1, "waits": True},
            {"group": "Reads", "statement": "broken", "belief": "?", "failed": "NameError: broken"},
        ],
        "operators": {
            "nonzero": operator(["torch.nonzero"], forward={"samples": 4, "synchronised": 4}),
            "add": operator(
                ["torch.add", "torch.Tensor.add"],
                forward={"samples": 4, "synchronised": 0},
                inplace={"samples": 4, "synchronised": 0},
            ),
            "std/one": operator(["torch.std"], forward={"samples": 2, "synchronised": 0}),
            "std/two": operator(["torch.std"], forward={"samples": 2, "synchronised": 1, "when": ["dim given"]}),
            "bincount": operator(
                ["torch.bincount"], forward={"samples": 2, "synchronised": 1, "unless": ["minlength given"]}
            ),
            "lost": {"failed": ["left out: no time"]},
        },
    }
    read = tomllib.loads(tool.table(document))
    assert read["torch"] == "2.11.0"
    assert read["statements"] == [{"code": "x.sum().item()", "group": "Reads", "syncs": 1, "waits": True}]
    assert read["forward"]["always"].split() == ["torch.nonzero"]
    assert read["forward"]["sometimes"].split() == ["torch.bincount", "torch.std"]
    assert read["forward"]["never"].split() == ["torch.Tensor.add", "torch.add"]
    assert read["forward"]["unless"] == {"torch.bincount": ["minlength given"]}
    assert "when" not in read["forward"]
    assert read["inplace"]["never"].split() == ["torch.Tensor.add_"]
