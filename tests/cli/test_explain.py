"""`perflint explain`."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.decisions import Outcome
from perflint.engine.decisions import decisions as decided
from perflint.engine.file import check_source
from perflint.output.explain import convention_text
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.facts.concepts import Entry, concept, tables
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.cli.command import ROOT, Command
from tests.engine.toys import Zeros

TRAIN = """\
import torch


def train(loader, optimizer):
    total = 0.0
    for x, y in loader:
        loss = torch.ones((), device="cuda")
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""
SUM = "a.py:10"


def explained(perflint: Command, place: str, *arguments: str) -> Any:
    """What the command says as JSON."""
    ran = perflint("explain", place, "--output-format", "json", *arguments)
    assert (ran.code, ran.err) == (0, "")
    return json.loads(ran.out)


def decisions(perflint: Command, text: str, place: str, *arguments: str) -> dict[str, tuple[str, str]]:
    """The decision of each rule about a place in a file, and why."""
    perflint.write("a.py", text)
    found = explained(perflint, place, *arguments)["rules"]
    return {rule["code"]: (rule["decision"], rule["why"]) for rule in found}


def test_a_line(perflint: Command) -> None:
    perflint.write("a.py", TRAIN)
    ran = perflint("explain", SUM)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[:14] == [
        "  --> a.py:10",
        "   |",
        "10 |         total += loss.item()",
        "   |         ^^^^^    ^^^^^^^^^^^",
        "   |                  ^^^^",
        "   |",
        "   = `total`: float",
        "       line 5: `total = 0.0`",
        "       line 10: `total += loss.item()`: the result of torch.Tensor.item",
        "   = `loss.item()`: float",
        "       the result of torch.Tensor.item",
        "   = `loss`: float tensor of rank 0, on the device (certain)",
        "       line 7: `loss = torch.ones((), device=\"cuda\")`: the result of torch.ones with `device='cuda'`",
        "   = heat: hot, runs each step",
    ]
    assert "\n   = heat: hot, runs each step\n       line 6: in the loop `for x, y in loader`, which" in ran.out
    assert (
        "\n   = TPF101 scalar-read-in-loop: shown (warning, high confidence, hot)\n       `loss.item()` blocks"
        in ran.out
    )
    assert re.search(r"\n   = no finding: \d+ rules looked at this line \(`--all` lists them\)\n", ran.out)
    ran = perflint("explain", "--all", SUM)
    assert "\n   = no finding: TPF101 finds something here\n       TPF102 many-scalars, TPF103" in ran.out


def test_a_column(perflint: Command) -> None:
    perflint.write("a.py", TRAIN)
    found = explained(perflint, f"{SUM}:19")
    assert [expression["text"] for expression in found["expressions"]] == ["loss", "loss.item()"]
    assert found["column"] == 19


def test_a_column_of_what_needs_no_explanation_in_a_line(perflint: Command) -> None:
    perflint.write("a.py", TRAIN)
    texts = [expression["text"] for expression in explained(perflint, "a.py:7:16")["expressions"]]
    assert texts[0] == "torch"
    assert texts[-1] == 'torch.ones((), device="cuda")'


def test_json(perflint: Command) -> None:
    perflint.write("a.py", TRAIN)
    found = explained(perflint, SUM)
    assert list(found) == [
        "version",
        "path",
        "cell",
        "line",
        "column",
        "source",
        "expressions",
        "heat",
        "rules",
        "errors",
    ]
    assert (found["version"], found["path"], found["line"], found["column"]) == (1, "a.py", 10, None)
    assert found["source"] == "        total += loss.item()"
    loss = next(expression for expression in found["expressions"] if expression["text"] == "loss")
    assert loss["places"] == [{"line": 10, "column": 18, "end_line": 10, "end_column": 22}]
    assert loss["tensor"] == {
        "device": "cuda",
        "kind": "float",
        "rank": 0,
        "pinned": False,
        "evidence": "certain",
        "on_device": "high",
    }
    assert [step["line"] for step in loss["why"]] == [7]
    assert found["heat"]["heat"] == "hot" and [step["line"] for step in found["heat"]["why"]] == [6]
    shown = [rule for rule in found["rules"] if rule["decision"] == "shown"]
    assert [(rule["code"], rule["column"], rule["finding"]["severity"]) for rule in shown] == [
        ("TPF101", 18, "warning")
    ]
    assert found["errors"] == []


def test_the_same_expression_twice_is_explained_once(perflint: Command) -> None:
    perflint.write("a.py", "def f(n: int):\n    return [n, n]\n")
    (belief,) = explained(perflint, "a.py:2")["expressions"]
    assert [place["column"] for place in belief["places"]] == [13, 16]


def test_imports(perflint: Command) -> None:
    perflint.write("a.py", "import torch\nimport yaml as y\nfrom torch import nn as n, Tensor\nfrom b import *\n")
    values = [
        (expression["text"], expression["value"])
        for line in (1, 2, 3, 4)
        for expression in explained(perflint, f"a.py:{line}")["expressions"]
    ]
    assert values == [
        ("torch", "module torch"),
        ("y", "module yaml"),
        ("n", "torch.nn"),
        ("Tensor", "class torch.Tensor"),
    ]


def test_a_definition(perflint: Command) -> None:
    perflint.write("a.py", TRAIN)
    found = explained(perflint, "a.py:4")
    values = {expression["text"]: expression["value"] for expression in found["expressions"]}
    assert values == {
        "loader": "object of torch.utils.data.DataLoader",
        "optimizer": "unknown",
    }
    assert found["heat"]["of_body"] and found["heat"]["heat"] == "warm"


def test_what_goes_over_several_lines(perflint: Command) -> None:
    perflint.write("a.py", "x = max(\n    1,\n    len('é' * 3),\n)\n")
    ran = perflint("explain", "a.py:1")
    assert "\n  | ^   ^^^^...\n" in ran.out
    assert "= `max(1, len('é' * 3))`: int\n" in ran.out


def test_tabs_and_wide_characters(perflint: Command) -> None:
    perflint.write("a.py", "def f(n: int):\n\treturn g('你', n)\n")
    excerpt = perflint("explain", "a.py:2").out.splitlines()[2:5]
    assert excerpt == ["2 |     return g('你', n)", "  |            ^^^^^^^^^^", "  |                    ^"]


def test_steps_in_other_files(perflint: Command) -> None:
    perflint.write("p/__init__.py", "")
    perflint.write("p/base.py", "import torch\nclass B:\n    def __init__(self):\n        self.x = torch.rand(3)\n")
    perflint.write("p/own.py", "from p.base import B\nclass A(B):\n    def f(self):\n        return self.x\n")
    path = os.path.join("p", "base.py")
    assert f" {path}:4: `self.x = torch.rand(3)`\n" in perflint("explain", "p/own.py:4").out
    (belief,) = explained(perflint, "p/own.py:4")["expressions"]
    assert belief["why"] == [
        {"text": "`self.x = torch.rand(3)`", "cell": None, "line": 4, "path": path, "conventions": []}
    ]


# Decisions

COLD = "import torch\ndef save_it(x: torch.Tensor):\n    return x.item()\n"
LOW = "import torch\ndef f(a):\n    b = a.item()\n    return torch.log(b).any().item()\n"


def test_hidden_by_heat(perflint: Command) -> None:
    found = decisions(perflint, COLD, "a.py:3")
    assert found["TPF101"] == ("hidden", "the code rarely runs; `--profile pedantic` shows it")


def test_hidden_by_confidence(perflint: Command) -> None:
    found = decisions(perflint, LOW, "a.py:4")
    assert found["TPF101"] == ("hidden", "confidence is low; `--profile audit` shows it")


@pytest.mark.parametrize(("profile", "decision"), [("default", "hidden"), ("pedantic", "shown"), ("audit", "shown")])
def test_the_profile_decides(perflint: Command, profile: str, decision: str) -> None:
    assert decisions(perflint, COLD, "a.py:3", "--profile", profile)["TPF101"][0] == decision


def test_hidden_by_severity(perflint: Command) -> None:
    text = "import torch\ndef f(x: torch.Tensor):\n    return x.cpu()\n"
    found = decisions(perflint, text, "a.py:3")
    assert found["TPF109"] == (
        "hidden",
        "neither the device of the tensor nor the callers are known; `--profile pedantic` shows it",
    )


@pytest.mark.parametrize(
    ("comment", "why"),
    [
        ("# noqa: TPF101", "by a comment on the line"),
        ("# perflint: ignore[TPF101] wanted", "by a comment on the line: wanted"),
        ("# perflint: ignore-file", "by a comment for the whole file"),
    ],
)
def test_suppressed(perflint: Command, comment: str, why: str) -> None:
    text = TRAIN.replace("loss.item()", f"loss.item()  {comment}")
    assert decisions(perflint, text, SUM)["TPF101"] == ("suppressed", why)


def test_off_by_selection(perflint: Command) -> None:
    assert decisions(perflint, TRAIN, SUM, "--ignore", "TPF101")["TPF101"] == ("off", "the rule is not selected")


def test_rules_that_are_off_are_silent_where_they_find_nothing(perflint: Command) -> None:
    assert list(decisions(perflint, TRAIN, SUM, "--select", "TPF101,TPF103")) == ["TPF101", "TPF103"]
    assert list(decisions(perflint, TRAIN, SUM, "--select", "TPF103")) == ["TPF101", "TPF103"]


def test_off_by_version(perflint: Command) -> None:
    text = "import torch\nscaler = torch.cuda.amp.GradScaler()\n"
    found = decisions(perflint, text, "a.py:2", "--torch-version", "2.1")
    assert found["TPF902"] == ("off", "the rule holds from torch 2.4 on, and the code is to run with 2.1")


def test_off_for_the_file(perflint: Command) -> None:
    perflint.write("pyproject.toml", '[tool.perflint.per-file-ignores]\n"a.py" = ["TPF101"]\n')
    found = decisions(perflint, TRAIN, SUM)
    assert found["TPF101"] == ("off", "`per-file-ignores` turns the rule off for this file")


ELEMENTS = """\
import torch

def total(x: torch.Tensor) -> int:
    return sum(int(part) for part in x.cuda())
"""


def test_a_rule_that_another_replaces(perflint: Command) -> None:
    found = decisions(perflint, ELEMENTS, "a.py:4")
    assert found["TPF101"] == ("no finding", "TPF103 finds something here")
    assert found["TPF103"] == ("shown", "")
    found = decisions(perflint, ELEMENTS, "a.py:4", "--ignore", "TPF103")
    assert found["TPF101"] == ("shown", "") and found["TPF103"] == ("off", "the rule is not selected")
    found = decisions(perflint, ELEMENTS, "a.py:4", "--ignore", "TPF101")
    assert found["TPF103"] == ("shown", "") and "TPF101" not in found


NOTHING = [
    ("import torch\ndef f(n: int):\n    if n:\n        pass\n", "a.py:3", "`n` is no tensor"),
    ("import torch\ndef f(n):\n    if n:\n        pass\n", "a.py:3", "`n` is not known to be a tensor"),
    ("import torch\nx = torch.ones(3)\nif x:\n    pass\n", "a.py:3", "`x` is on the CPU"),
]


@pytest.mark.parametrize(("text", "place", "why"), NOTHING, ids=[why for _, _, why in NOTHING])
def test_no_finding(perflint: Command, text: str, place: str, why: str) -> None:
    assert decisions(perflint, text, place)["TPF105"] == ("no finding", why)


def test_no_rule(perflint: Command) -> None:
    perflint.write("a.py", "x = 1\n")
    assert perflint("explain", "a.py:1").out.endswith(
        "   = rules: no rule applies to this line\n".replace("   ", "  ", 1)
    )


EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))


MADE_ON_THE_HOST = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, scales: torch.Tensor) -> None:
        super().__init__()
        self.scales = [scale.item() for scale in scales]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x.max().item()
"""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("profile", list(Profile))
def test_decisions_are_those_of_a_check(path: Path, profile: Profile) -> None:
    assert_explained(str(path), path.read_text(encoding="utf-8"), profile)


def test_decisions_about_what_is_made_on_the_host() -> None:
    assert assert_explained("net.py", MADE_ON_THE_HOST, Profile.AUDIT) == {12}


COMPILED = """
import torch


@torch.compile
def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * x.max().item()
"""


def test_decisions_about_what_breaks_a_graph() -> None:
    """The read breaks the graph, and that it waits besides is not said again."""
    assert assert_explained("net.py", COMPILED, Profile.AUDIT) == {7}


def assert_explained(path: str, text: str, profile: Profile) -> set[int]:
    """Explain each line of a text and check it; the lines of the findings, which are the same."""
    settings = Settings(profile=profile)
    source = Source(path, text)
    report = check_source(source, Project([Path(path)]), RuleSet(all_rules()), settings)
    model = Model(Source(path, text), Project([Path(path)]))
    found = [
        decision.finding
        for line in range(1, len(source.lines) + 1)
        for decision in decided(model, settings, line, None, [])
        if decision.outcome is Outcome.SHOWN
    ]
    assert report.findings
    assert {(f.code, f.span, f.message) for f in found if f} == {(f.code, f.span, f.message) for f in report.findings}
    return {finding.span.line for finding in report.findings}


# What there is nothing to say of

FAULTS = [
    ("nowhere.py:3", "nowhere.py: no such file or folder", None),
    ("a.py", "`a.py` names no line", "perflint explain a.py:LINE"),
    ("a.py:x", "`a.py:x` names no line", "perflint explain a.py:LINE"),
    ("a.py:0", "`a.py:0`: lines and columns count from 1", None),
    ("a.py:4:0", "`a.py:4:0`: lines and columns count from 1", None),
    ("a.py:99", "a.py has no line 99", "its last line is 11"),
    ("a.py:2", "line 2 of a.py is empty", "the next statement is on line 4"),
    ("a.py:5:99", "line 5 of a.py has no column 99", "its last column is 15"),
    ("a.py:5:2", "no expression at column 2 of line 5 of a.py", "expressions begin at columns 5, 13"),
    ("broken.py:1", "broken.py:1:", "perflint reads the syntax of Python"),
    ("nulls.py:1", "nulls.py:", None),
    ("latin.py:1", "latin.py:1: not UTF-8: byte 0xe9", "save the file as UTF-8"),
    ("comment.py:1", "line 1 of comment.py is a comment", "the next statement is on line 2"),
    ("comment.py:5", "no expression begins on line 5 of comment.py", "its statement begins on line 2"),
    ("comment.py:6", "line 6 of comment.py is a comment", None),
    ("empty.py:1", "empty.py has no line 1", "it is empty"),
    ("folder:1", "folder: cannot be read: ", None),
]


@pytest.mark.parametrize(("place", "message", "help"), FAULTS, ids=[place for place, _, _ in FAULTS])
def test_faults(perflint: Command, place: str, message: str, help: str | None) -> None:
    perflint.write("a.py", TRAIN)
    perflint.write("broken.py", "x =\n")
    perflint.write("nulls.py", b"x = 1\0\n")
    perflint.write("latin.py", "x = 'é'\n".encode("latin-1"))
    perflint.write("comment.py", "# what\nx = (\n    1\n\n)\n# end\n")
    perflint.write("empty.py", "")
    (perflint.folder / "folder").mkdir()
    ran = perflint("explain", place)
    assert (ran.code, ran.out) == (2, "")
    first, *rest = ran.err.splitlines()
    assert first.startswith(f"error: {message}")
    assert len(rest) == (help is not None) or place == "nulls.py:1"
    assert help is None or rest[0].startswith(f"  help: {help}")


def test_a_place_must_be_named(perflint: Command) -> None:
    ran = perflint("explain")
    assert ran.code == 2
    assert "the following arguments are required: FILE:LINE[:COLUMN]" in ran.err


def test_unknown_rules(perflint: Command) -> None:
    perflint.write("a.py", TRAIN)
    ran = perflint("explain", SUM, "--select", "TPF1001")
    assert (ran.code, ran.out) == (2, "")
    assert "unknown rule `TPF1001`" in ran.err


def test_standard_input(perflint: Command) -> None:
    perflint.write("a.py", "x = 'old'\n")
    ran = perflint("explain", "a.py:1", "--stdin", stdin=b"x = 'new'\n")
    assert (ran.code, ran.err) == (0, "")
    assert "= `x`: str 'new'\n" in ran.out


def test_an_excluded_file_is_explained(perflint: Command) -> None:
    perflint.write("build/a.py", "x = 1\n")
    ran = perflint("explain", "build/a.py:1")
    assert ran.code == 0
    assert "= `x`: int 1\n" in ran.out
    assert ran.err.startswith("warning: the settings exclude build/a.py\n  help: ")


def test_colours(perflint: Command) -> None:
    perflint.write("a.py", TRAIN)
    assert "\x1b[" not in perflint("explain", SUM).out
    assert "\x1b[1;32m        ^^^^^    ^^^^^^^^^^^\x1b[0m" in perflint("explain", SUM, "--color", "always").out


def test_control_characters_do_not_reach_the_terminal(perflint: Command) -> None:
    perflint.write("a.py", "x = '\x1b[2J'\n")
    assert "\x1b" not in perflint("explain", "a.py:1").out


def test_a_rule_that_crashes(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = next(rule for rule in all_rules() if rule.code == "TPF101")

    def check(self: object, site: object) -> bool:
        raise ZeroDivisionError("no")

    monkeypatch.setattr(type(rule), "check", check)
    perflint.write("a.py", TRAIN)
    ran = perflint("explain", SUM)
    assert ran.code == 2
    assert "= `total`: float\n" in ran.out
    assert ran.err.startswith("error: a.py:10: rule TPF101 (scalar-read-in-loop) crashed: ZeroDivisionError: no")


def test_a_step_names_its_convention_and_the_judged_findings_that_rest_on_it(perflint: Command) -> None:
    perflint.write("a.py", TRAIN)
    counts = concept("loader").judged
    assert counts is not None and counts.of > counts.true > 0
    step = explained(perflint, SUM)["heat"]["why"][0]
    judged = {"true": counts.true, "of": counts.of, "date": counts.date}
    assert step["conventions"] == [{"concept": "loader", "entry": "*loader", "judged": judged}]
    words = f"{counts.true} of {counts.of} judged findings that rest on it were true"
    assert f"\n         convention `loader`, entry `*loader`: {words}\n" in perflint("explain", SUM).out


def test_a_convention_without_judged_findings_says_so() -> None:
    name = next(name for name in tables() if concept(name).judged is None)
    assert (
        convention_text(Entry(name, "x_*", "loads"))
        == f"convention `{name}`, entry `x_*`: no judged finding rests on it"
    )


def test_a_purpose_has_its_evidence(tmp_path: Path, perflint: Command) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "other.py").touch()
    (tmp_path / "measure.py").write_text(
        "import torch\n\n\ndef main(model, loader):\n    for x in loader:\n"
        "        print(model(x.cuda()).sum().item())\n\n\nmain(torch.load('a'), torch.load('b'))\n"
    )
    ran = perflint("explain", "--no-cache", f"{tmp_path / 'measure.py'}:6")
    assert "purpose: analysis (it updates no weights, and no training leads to it)" in ran.out


def test_why_a_finding_is_not_shown(perflint: Command) -> None:
    head = "import torch\n\ndef f(x: torch.Tensor):\n    if x.dtype == torch.float16:\n"
    doubted = decisions(perflint, head + "        print(x.cuda().sum().item())\n", "a.py:5", "--profile=pedantic")
    assert doubted["TPF101"] == ("hidden", "confidence is low; `--profile audit` shows it")
    perflint.write("perflint.toml", 'min-severity = "error"\n[severity]\nTPF101 = "warning"\n')
    hidden = decisions(perflint, TRAIN, SUM)
    assert hidden["TPF101"] == ("hidden", "the settings show no findings of its severity or confidence")


class Past(Zeros):
    """A rule of an old torch."""

    code, until = "TPF999", (2, 0)


def test_a_rule_that_holds_only_before_a_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perflint.engine.decisions.all_rules", lambda settings: (Past(),))
    model = Model(Source("a.py", "import torch\nx = torch.zeros(3)\n"), Project())
    (found,) = decided(model, Settings(torch_version=(2, 5)), 2, None, [])
    assert (found.outcome, found.why) == (Outcome.OFF, "the rule holds only before torch 2.0")
