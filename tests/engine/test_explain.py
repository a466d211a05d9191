"""Which expressions of a line are explained, and the words for imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.explain import Explanation, explain
from perflint.engine.projects import Projects
from perflint.findings import Heat
from perflint.semantics.project import Project
from perflint.source.text import Source

AUDIT = Settings(profile=Profile.AUDIT)
TEXT = """\
import torch
from other import helper


def f(x: torch.Tensor, n: int = 3) -> torch.Tensor:
    y: torch.Tensor = x + 1
    z = n + 1
    while x.any() and n:
        n = float("inf")
    if not x.any():
        return -y
    helper(x)
    print(f"{x}", (x, [x]))
    return lambda a: a


def hot(loader):
    while True:
        f(next(loader))
"""
TOLD = {
    1: ["torch"],
    2: ["helper"],
    # Annotations are plain to see.
    5: ["x", "n"],
    6: ["y", "x + 1", "x"],
    # So are numbers that come of numbers, and constants in a call.
    7: ["z", "n"],
    8: ["x.any() and n", "x.any()", "x", "n"],
    9: ["n"],
    10: ["x.any()", "x"],
    11: ["-y", "y"],
    12: ["x"],
    13: ["x"],
    14: ["a"],
}


def explained(line: int, column: int | None = None) -> Explanation:
    return explain(Source("a.py", TEXT), Project(), AUDIT, line, column)


@pytest.mark.parametrize(("line", "told"), TOLD.items())
def test_what_is_told_of_a_line(line: int, told: list[str]) -> None:
    assert [belief.text for belief in explained(line).beliefs] == told


def test_the_expression_at_a_column_is_told_whatever_it_is() -> None:
    column = TEXT.splitlines()[6].index("n + 1") + 1
    assert [belief.text for belief in explained(7, column + 4).beliefs] == ["1"]
    assert [belief.text for belief in explained(7, column).beliefs] == ["n"]


def test_the_heat_of_a_loop_is_that_of_its_test() -> None:
    assert not explained(8).is_body and explained(5).is_body
    assert explained(18).heat is not Heat.COLD


def test_names_that_a_module_does_not_have(tmp_path: Path) -> None:
    for name, text in {"__init__.py": "", "b.py": "x = 1\n", "a.py": "from pkg.b import gone, x\n"}.items():
        (tmp_path / "pkg").mkdir(exist_ok=True)
        (tmp_path / "pkg" / name).write_text(text)
    (tmp_path / "pyproject.toml").touch()
    path = tmp_path / "pkg" / "a.py"
    made = explain(Source(str(path), path.read_text()), Projects(AUDIT).of(path), AUDIT, 1, None)
    steps = {belief.text: [step.text for step in belief.steps] for belief in made.beliefs}
    assert steps["gone"] == ["perflint does not find it where it is to come from"]
    assert steps["x"] != steps["gone"]
