"""Safe fixes keep their meaning for all operands and contexts, not only for those that scenarios thought of.

`tests/fixes/matrix` says how. It runs on a simulated GPU, in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from perflint.findings import Safety
from perflint.output.pages import fix_safeties
from perflint.rules.registry import all_rules
from tests.fixes.matrix.covering import covering
from tests.fixes.matrix.running import QUICK, Effort, fixed, functions, rule_of, source
from tests.fixes.matrix.templates import TEMPLATES, Template
from tests.once import once
from tests.tracer import warm

ROOT = Path(__file__).parents[2]
NAMES = [template.name for template in TEMPLATES]
by_template = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="session")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `running` says of a sample of all templates."""

    def run(target: Path) -> None:
        done = warm.script(ROOT, "tests/fixes/matrix/running.py", str(target))
        assert done.code == 0, done.err

    return once(tmp_path_factory, "matrix", run)


OF_COMMENTS = {"TPF981", "TPF982"}
"""Their fixes change comments, which have no operands."""


def check(verdict: dict[str, Any]) -> None:
    """A template must be fixed somewhere, run somewhere, and mean the same everywhere."""
    wrong = verdict["wrong"]
    assert not wrong, f"{len(wrong)} times, as here:\n" + "\n\n".join(wrong[:3])
    assert verdict["fixed"], "no safe fix applies to any of its texts"
    assert verdict["finished"], "none of its texts runs without an error"


def test_names_are_unique() -> None:
    assert max(Counter(NAMES).values()) == 1


def test_every_rule_with_safe_fixes_has_templates() -> None:
    safe = {rule.code for rule in all_rules() if Safety.SAFE in fix_safeties(rule)} - OF_COMMENTS
    assert safe == {template.code for template in TEMPLATES}


@by_template
def test_same_meaning(name: str, said: dict[str, Any]) -> None:
    check(said["verdicts"][name])


def test_known_changes_are_seen(said: dict[str, Any]) -> None:
    assert not said["overlooked"], "\n\n".join(said["overlooked"])


@pytest.mark.slow
@by_template
def test_same_meaning_in_many_more_combinations(name: str, tmp_path: Path) -> None:
    target = tmp_path / "said.json"
    command = [sys.executable, "-m", "tests.fixes.matrix.running", str(target), "--whole", "--only", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stderr
    check(json.loads(target.read_text(encoding="utf-8"))["verdicts"][name])


@pytest.mark.parametrize("template", TEMPLATES, ids=NAMES)
def test_torchscript_compiles_no_fixed_code(template: Template) -> None:
    text = source(template, Effort(0, 0), "@torch.jit.script\n")
    assert fixed(text, rule_of(template)) == text


@pytest.mark.parametrize("later", ["torch.jit.script({name})", "fast = torch.jit.script_if_tracing({name})"])
def test_torchscript_may_compile_code_later(later: str) -> None:
    text = source(TEMPLATES[0], Effort(0, 0))
    assert fixed(text, rule_of(TEMPLATES[0])) != text
    text += "".join(f"{later.format(name=name)}\n" for name in functions(text))
    assert fixed(text, rule_of(TEMPLATES[0])) == text


def test_combinations_have_each_alternative_and_are_always_the_same() -> None:
    axes = {"a": ["1", "2", "3"], "b": ["x", "y"], "c": ["only"]}
    rows = covering(axes, 4, "seed")
    assert rows == covering(axes, 4, "seed")
    assert all({row[axis] for row in rows} == set(alternatives) for axis, alternatives in axes.items())
    assert len(rows) <= 7
    assert len({tuple(row.items()) for row in rows}) == len(rows)
    assert covering({}, 2, "seed") == [{}]


def test_a_sample_is_part_of_the_whole() -> None:
    template = TEMPLATES[0]
    few, many = (set(functions(source(template, Effort(texts, 0))).values()) for texts in (0, QUICK.texts))
    assert len(few) < len(many)
