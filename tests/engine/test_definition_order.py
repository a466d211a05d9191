"""Findings do not depend on the order of the functions of a file, where the program means the same."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import permutations
from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.file import check_source
from perflint.engine.files import check_files
from perflint.findings import Finding
from perflint.semantics.project import Project
from perflint.source.files import below
from perflint.source.text import Source
from tests.engine.definitions import reordered
from tests.rules.harness import Case, parse_fixture, source_cases
from tests.sample import sample

AUDIT = Settings(profile=Profile.AUDIT)
Told = Counter[tuple[object, ...]]


def told(findings: Iterable[Finding], lines: tuple[int, ...]) -> Told:
    """What findings claim, with the lines of another text."""
    return Counter(
        (lines[each.span.line - 1], each.span.column, each.code, each.severity, each.confidence, each.heat)
        for each in findings
    )


def found(text: str, lines: tuple[int, ...]) -> Told:
    report = check_source(Source("program.py", text), Project(), active_rules(AUDIT), AUDIT)
    assert not report.problems
    return told(report.findings, lines)


def backwards(numbers: list[int]) -> list[int]:
    return numbers[::-1]


def shuffled(seed: int) -> Callable[[list[int]], list[int]]:
    return lambda numbers: random.Random(seed).sample(numbers, len(numbers))


CIRCLE = """\
import torch
net = torch.nn.Linear(3, 1).cuda()
def f(x, n):
    y = net(x)
    if n:
        g(x, n - 1)
    return y
def g(x, n):
    return f(x, n)
def solve(x):
    x.cuda().sum().item()
    f(x, 2)
def main(xs):
    for x in xs:
        out = g(x, 2)
        print(out.cuda().item())
"""


def test_functions_that_call_each_other_in_a_circle() -> None:
    everything = [found(*reordered(CIRCLE, lambda numbers, to=to: list(to))) for to in permutations(range(4))]  # type: ignore[misc]
    assert everything[0] and all(each == everything[0] for each in everything)


INHERITED = """\
import torch
class Base:
    def fit(self, x: torch.Tensor):
        self.setup(x.cuda())
        for _ in range(3):
            y = self.step(x.cuda())
            self.given(y)
            self.circle(self.size)
    def step(self, x):
        raise NotImplementedError
class Child(Base):
    def step(self, x):
        return x.sum().item() + self.size.item() + x
    def given(self, y):
        self.run(y)
        y.sum().item()
    def run(self, x):
        self.circle(x)
        self.given(torch.rand(3).cuda())
    def circle(self, n):
        n.sum().item()
        return self.run(n)
    def setup(self, size):
        self.size = size
        size.sum().item()
"""


def test_methods_that_inherited_ones_call_in_a_circle() -> None:
    everything = [found(*reordered(INHERITED, shuffled(seed))) for seed in range(20)]
    assert everything[0].total() == 6 and all(each == everything[0] for each in everything)


@pytest.mark.parametrize("case", sample(source_cases(), 4), ids=str)
def test_fixtures(case: Case) -> None:
    text = parse_fixture(case.fixture.read_text(encoding="utf-8")).text
    first = found(*reordered(text, list))
    assert first
    for order in (backwards, shuffled(0)):
        assert found(*reordered(text, order)) == first


@pytest.mark.slow
@pytest.mark.parametrize("package", ("detr", "open_clip", "trl"))
def test_public_projects(package: str, tmp_path: Path) -> None:
    """Projects in the folder that PERFLINT_PROJECTS names, with the functions of all their files in another order."""
    folder = Path(os.environ.get("PERFLINT_PROJECTS", ""), package)
    if not os.environ.get("PERFLINT_PROJECTS") or not folder.is_dir():
        pytest.skip("PERFLINT_PROJECTS names no folder with it")
    runs = []
    for number, order in enumerate((list, backwards, shuffled(0))):
        copy = tmp_path / str(number) / package
        shutil.copytree(folder, copy)
        lines = {}
        for file in map(Path, below(str(copy), AUDIT)):
            text, lines[str(file)] = reordered(file.read_text(encoding="utf-8"), order)
            file.write_text(text, encoding="utf-8")
        runs.append({
            str(Path(source.path).relative_to(copy)): told(report.findings, lines[source.path])
            for source, report in check_files(list(lines), active_rules(AUDIT), AUDIT)
        })  # fmt: skip
    print(f"{package}: {sum(each.total() for each in runs[0].values())} findings in {len(runs[0])} files")
    assert runs[1] == runs[0] == runs[2]
