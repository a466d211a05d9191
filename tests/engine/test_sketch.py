"""The first answer to an edit."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Settings
from perflint.engine.active import active_rules
from perflint.engine.file import check_source
from perflint.engine.sketch import edited, sketch
from perflint.findings import Finding
from perflint.semantics.project import Project
from perflint.source.text import Source

TEXT = """\
import torch


def read(x):
    return x.item()


def train(model, loader, optimizer):
    for batch in loader:
        loss = model(batch.cuda()).sum()
        loss.backward()
        optimizer.step()
        print(loss.item())


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()

    @torch.no_grad()
    def forward(self, x):
        return x + x.sum().item()
"""


def part(before: str, now: str) -> list[str]:
    """The lines of the functions and statements that an edit changed."""
    source = Source("a.py", now)
    return [source.lines[line - 1].strip() for line in edited(Source("a.py", before), source).part]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("    return x.item()\n", "    y = x\n    return y.item()\n", ["def read(x):", "y = x", "return y.item()"]),
        ("        super().__init__()\n", "        pass\n", ["def __init__(self):", "pass"]),
        (
            "        return x +",
            "        return 1 +",
            ["@torch.no_grad()", "def forward(self, x):", "return 1 + x.sum().item()"],
        ),
        ("\n\ndef train", "\n\nk = 1\n\n\ndef train", ["k = 1", "", ""]),
        ("import torch\n", "import torch\nimport os\n", ["import os"]),
        ("import torch\n", "# A comment.\nimport torch\n", ["# A comment."]),
        ("\n\ndef train", "\n\n\n\ndef train", ["", ""]),
    ],
)
def test_the_lines_that_a_sketch_looks_at(old: str, new: str, expected: list[str]) -> None:
    assert part(TEXT, TEXT.replace(old, new)) == expected


def test_a_function_that_lost_its_last_line_has_changed() -> None:
    assert part(TEXT, TEXT.replace("        print(loss.item())\n", ""))[0] == "def train(model, loader, optimizer):"
    assert part(TEXT, TEXT) == []


def test_the_head_of_a_class_concerns_all_of_it() -> None:
    changed = part(TEXT, TEXT.replace("class Net(torch.nn.Module):", "class Net(Base):"))
    assert (changed[0], changed[-1]) == ("class Net(Base):", "return x + x.sum().item()")


def places(findings: list[Finding]) -> list[tuple[int, str, str]]:
    return [(finding.span.line, finding.code, finding.message) for finding in findings]


def answers(before: str, now: str, path: Path) -> tuple[list[Finding], list[Finding]]:
    """The findings of a sketch of an edit, and those of a check."""
    path.write_text(before)
    settings = Settings()
    rules = active_rules(settings)
    project = Project([path])
    source = Source(str(path), before)
    known = check_source(source, project, rules, settings).findings
    assert known
    edit = Source(str(path), now)
    found = sketch(source, known, edit, project.overlay({path: now}), rules, settings)
    assert not found.problems
    return found.findings, check_source(Source(str(path), now), project.overlay({path: now}), rules, settings).findings


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import torch\n", "import os\n\nimport torch\n"),
        ("    for batch in loader:\n", "    for batch in loader:\n        torch.cuda.synchronize()\n"),
        ("        print(loss.item())\n", ""),
        ("def train(", "def read_again(x):\n    return x.cpu().item()\n\n\ndef train("),
        ("    return x.item()", "    return x.item() + 1"),
    ],
)
def test_a_sketch_has_the_findings_of_a_check(tmp_path: Path, old: str, new: str) -> None:
    quick, whole = answers(TEXT, TEXT.replace(old, new), tmp_path / "a.py")
    assert places(quick) == places(whole)


def test_a_function_takes_the_arguments_of_its_callers(tmp_path: Path) -> None:
    text = TEXT.replace("print(loss.item())", "show(loss)\n\n\ndef show(value):\n    print(value)\n")
    text += "\n\ndef other(model, x):\n    return model(x).item()\n"
    quick, whole = answers(text, text.replace("print(value)", "print(value.item())"), tmp_path / "a.py")
    assert "TPF101" in [finding.code for finding in whole if finding.function == "show"]
    assert places(quick) == places(whole)


def test_findings_about_the_whole_file_and_its_comments_stay(tmp_path: Path) -> None:
    text = TEXT + "\n\nk = 1  # perflint: ignore[TPF101]\n"
    text += "\n\ndef evaluate(x):\n    with torch.no_grad():\n        return torch.cat([x, x])\n"
    quick, whole = answers(text, text.replace("torch.cat([x, x])", "torch.stack([x, x])"), tmp_path / "a.py")
    assert places(quick) == places(whole)
    assert {"TPF981", "TPF101"} <= {finding.code for finding in quick}


def test_other_functions_are_as_before_even_if_the_edit_concerns_them(tmp_path: Path) -> None:
    quick, whole = answers(TEXT, TEXT.replace("print(loss.item())", "read(loss)"), tmp_path / "a.py")
    assert 5 in [finding.span.line for finding in whole]
    assert places(quick) == [place for place in places(whole) if place[0] != 5]


def test_what_a_change_of_another_line_cures_stays_for_the_draft(tmp_path: Path) -> None:
    show = "        print(loss.item())\n"
    quick, whole = answers(TEXT, TEXT.replace(show, f"        loss = torch.zeros(3)\n{show}"), tmp_path / "a.py")
    assert len(places(quick)) > len(places(whole))


def test_fixes_of_before_are_not_offered(tmp_path: Path) -> None:
    text = TEXT.replace("print(loss.item())", "torch.cuda.synchronize()\n        print(loss.item())")
    quick, _ = answers(text, text.replace("import torch\n", "import torch\n\nk = 1\n"), tmp_path / "a.py")
    assert quick and not any(finding.fix for finding in quick)


def test_a_text_without_a_tree_is_a_problem(tmp_path: Path) -> None:
    settings, now = Settings(), Source(str(tmp_path / "a.py"), "def f(:\n")
    found = sketch(Source(now.path, TEXT), [], now, Project(), active_rules(settings), settings)
    assert [problem.line for problem in found.problems] == [1] and not found.files
