"""Checking and fixing take time that is at most linear in the text, whatever there is much of.

Work is counted in calls of functions, so that a busy machine does not matter. A third of the programs is checked,
another one after each change; all of them, and the long ones, take minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import log

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.file import check_source
from perflint.engine.fixing import fix_text
from perflint.findings import Report, Safety, up_to
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.growth import calls
from tests.growth.families import FAMILIES, lines
from tests.sample import sample

AUDIT = replace(Settings(), profile=Profile.AUDIT)
STEEPEST = 1.25
"""The largest exponent; sorting alone has more than 1."""


def check(path: str, text: str, project: Project) -> Report:
    return check_source(Source(path, text), project, active_rules(AUDIT), AUDIT)


def fix(text: str) -> None:
    outcome, problems = fix_text("program.py", text, Project(), check, up_to(Safety.RISKY))
    assert outcome is not None and not problems


def exponent(work: Callable[[str], object], programs: list[str]) -> float:
    """How much steeper than the text the work grows from the first program to the last."""
    first, last = programs[0], programs[-1]
    return log(calls(lambda: work(last)) / calls(lambda: work(first))) / log(len(last) / len(first))


def checked(text: str) -> None:
    assert not check("program.py", text, Project()).problems


@pytest.mark.parametrize("factor", [1, pytest.param(16, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sample((name for name, family in FAMILIES.items() if not family.fixed), 3))
def test_checking(name: str, factor: int) -> None:
    family = FAMILIES[name]
    sizes = [family.size * factor * each for each in (1, 3)]
    programs = [family.program(size) for size in sizes]
    checked(family.program(2))
    assert exponent(checked, programs) < STEEPEST


@pytest.mark.parametrize("factor", [1, pytest.param(16, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.fixed])
def test_fixing(name: str, factor: int) -> None:
    """Fixing checks the text before and after."""
    family = FAMILIES[name]
    programs = [family.program(family.size * factor * each) for each in (1, 3)]
    fix(family.program(2))
    assert exponent(fix, programs) < STEEPEST


METHOD = "    def m(self, x):\n        return x.item()\n"
CALLS = "    def f~(self, x: torch.Tensor):\n        return self.m(x)\n"


def overridden(n: int) -> str:
    base = "class B:\n    def m(self, x):\n        raise NotImplementedError\n" + lines(CALLS, n)
    return base + lines(f"class A~(B):\n{METHOD}", n)


OVERRIDES: dict[str, Callable[[int], str]] = {
    "objects": lambda n: overridden(n) + lines("A~().m(torch.rand(3))", n),
    "functions": lambda n: overridden(n) + lines("def g~():\n    return A~().m(torch.rand(3))", n),
    "own methods": lambda n: "class A0:\n    pass\n" + lines(f"class A$(A~):\n{METHOD}{CALLS}", n),
    # The base has no such method.
    "unknown objects": lambda n: "class B:\n" + lines(CALLS, n) + lines(f"class A~(B):\n{METHOD}", n),
}


@pytest.mark.parametrize("name", OVERRIDES)
def test_inherited_methods_run_if_nothing_else_calls(name: str) -> None:
    """Each class overrides a method, and many methods that it inherits call this method."""

    def steps_for_each_node(n: int) -> float:
        text = f"import torch\n{OVERRIDES[name](n)}"
        model = Model(Source("program.py", text), Project())
        steps = model.steps / model.module.structure.size
        model.close()
        return steps

    assert steps_for_each_node(160) <= 1.3 * steps_for_each_node(20)
