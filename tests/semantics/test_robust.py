"""Inference ends, in linear time and without an exception, whatever the code.

Time is measured in calls of functions, Python's and C's, so that a busy machine does not matter.
A third of the growing programs is counted, another one after each change; all of them, the whole standard library and
all installed packages take minutes: `pytest --slow`.
"""

from __future__ import annotations

import ast
import json
import sysconfig
import textwrap
import time
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.explain import explain
from perflint.engine.file import check_source
from perflint.semantics.depth import deep_stack
from perflint.semantics.explain.describe import describe
from perflint.semantics.explain.reasons import Reasons
from perflint.semantics.heat.reasons import HeatReasons
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.cli.command import python
from tests.growth import calls
from tests.sample import sample
from tests.semantics.hostile import GROWING, ODD, UNPARSABLE, Program

MOST_STEPS = 130
"""Steps of the interpreter for each node of a file and 100 more; 109 is the most that was measured."""
AUDIT = replace(Settings(), profile=Profile.AUDIT)


@dataclass(frozen=True)
class Work:
    """What it takes to learn everything about a file."""

    path: str
    nodes: int
    steps: int
    seconds: float
    unfinished: int

    @property
    def ratio(self) -> float:
        """Steps of the interpreter for each node."""
        return self.steps / (self.nodes + 100)


def examine(source: Source, project: Project) -> Work:
    """Ask for everything that the model of a file knows."""
    start = time.process_time()
    model = Model(source, project)
    for node in model.everything():
        model.heat(node)
        if isinstance(node, ast.expr):
            model.value(node)
        if isinstance(node, ast.Call):
            model.target(node)
    for site in model.sites():
        assert site.model is model
    return Work(source.path, model.module.structure.size, model.steps, time.process_time() - start, model.unfinished)


# Programs made for it


by_program = pytest.mark.parametrize(("program", "size"), GROWING.values(), ids=GROWING.keys())


@pytest.mark.parametrize("name", sample(GROWING, 3))
def test_time_is_linear(name: str) -> None:
    program, size = GROWING[name]
    examine(Source("warm_up.py", program(3)), Project())
    per_node: list[float] = []
    for count in (size, 2 * size):
        source = Source("program.py", program(count))
        source.tree  # noqa: B018
        made: list[Work] = []
        work = calls(lambda source=source, made=made: made.append(examine(source, Project())))  # type: ignore[misc]
        assert made[0].ratio <= MOST_STEPS
        per_node.append(work / made[0].nodes)
    assert per_node[1] <= 1.3 * per_node[0] + 5, per_node


@by_program
def test_everything_can_be_said(program: Program, size: int) -> None:
    source = Source("program.py", program(size // 2))
    report = check_source(source, Project(), active_rules(AUDIT), AUDIT)
    assert not report.problems
    with deep_stack():
        model = Model(source, Project())
        expressions = [node for node in model.everything() if isinstance(node, ast.expr)]
        assert all(map(describe, {model.value(node) for node in expressions}))
        for node in (*expressions[:3], *expressions[-3:]):
            assert HeatReasons(model).of(node)
            Reasons(model).of(node)
    lines = [statement.lineno for statement in source.tree.body]
    assert explain(source, Project(), AUDIT, lines[-1], None).heat_steps


# Programs that nobody should write


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_odd_programs(text: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.py"
    path.write_text(text, encoding="utf-8")
    (tmp_path / "other.py").write_text("from odd import *\nimport odd\nx = odd.x\n", encoding="utf-8")
    source = Source(str(path), text)
    work = examine(source, Project([path]))
    assert work.ratio <= MOST_STEPS and not work.unfinished
    report = check_source(Source(str(path), text), Project([path]), active_rules(AUDIT), AUDIT)
    assert not report.problems
    with deep_stack():
        model = Model(source, Project([path]))
        expressions = [node for node in model.everything() if isinstance(node, ast.expr)]
        assert all(map(describe, {model.value(node) for node in expressions}))
        for node in expressions[:: max(1, len(expressions) // 20)]:
            Reasons(model).of(node)


def test_what_cannot_be_parsed_is_a_problem_of_that_file(tmp_path: Path) -> None:
    for number, text in enumerate(UNPARSABLE.values()):
        (tmp_path / f"broken{number}.py").write_text(text, encoding="utf-8")
        fine = f"import torch\nimport broken{number} as broken\nx = torch.rand(3).cuda()\n"
        (tmp_path / f"fine{number}.py").write_text(
            f"{fine}for y in broken.data:\n    print(x.item())\n", encoding="utf-8"
        )
    ran = python("-m", "perflint", "check", "--profile", "audit", "--output-format", "json", ".", cwd=tmp_path)
    told = json.loads(ran.out)
    numbers = range(len(UNPARSABLE))
    assert {error["path"]: error["internal"] for error in told["errors"]} == {f"broken{n}.py": False for n in numbers}
    assert {finding["path"] for finding in told["findings"]} == {f"fine{n}.py" for n in numbers}
    assert ran.code == 2 and "Traceback" not in ran.err


_NAMES = st.sampled_from(["a", "b", "self", "torch", "nn", "A", "f", "x", "self.x", "a.b.c", "torch.rand", "nn.Linear"])
_PAIRS = ("{} + {}", "{}[{}]", "{}({})", "[{}, *{}]", "{{'a': {}, **{}}}", "{} and {}", "({}, {})", "{} if {} else a")
_ALONE = ("lambda a: {}", "[{} for x in a if x]", "{}.item()", "not {}", "(a := {})", "f'{{{}}}'", "{}.a(b=a)")
_SIMPLE = ("a = {}", "b.c = {}", "self.x = {}", "a[b] = {}", "a, *b = {}", "a += {}", "return {}", "x.append({})")
_BLOCKS = (
    *("for a, b in {}:", "while {}:", "if {}:", "with {} as a:", "def f(a, b={}, *x, **c):", "class A({}):"),
    *("class A:", "def f(self, x=None):", "async def f(a):", "class A(A, nn.Module):", "@f\ndef f(x: 'A') -> A:"),
)


def _expressions() -> st.SearchStrategy[str]:
    leaves = st.one_of(_NAMES, st.sampled_from(["1", "None", "()", "...", "'cuda'", "torch.rand(3).cuda()", "super()"]))

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.builds(str.format, st.sampled_from(_PAIRS), inner, inner)
        return st.one_of(pairs, st.builds(str.format, st.sampled_from(_ALONE), inner))

    return st.recursive(leaves, larger, max_leaves=8)


def _programs() -> st.SearchStrategy[str]:
    simple = st.builds(str.format, st.sampled_from(_SIMPLE), _expressions())

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        bodies = st.lists(inner, min_size=1, max_size=4).map("\n".join)
        heads = st.builds(str.format, st.sampled_from(_BLOCKS), _expressions())
        return st.builds(lambda head, body: f"{head}\n" + textwrap.indent(body, "    "), heads, bodies)

    return st.lists(st.recursive(simple, larger, max_leaves=12), min_size=1, max_size=5).map("\n".join)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(_programs())
@example("def f(self, x=None):\n    @f\n    def f(x: 'A') -> A:\n        a = [a for x in a if x]")
def test_any_program(text: str) -> None:
    source = Source("odd.py", f"import torch\nfrom torch import nn\nfrom odd import *\n{text}\n")
    try:
        source.tree  # noqa: B018
    except SyntaxError:
        reject()
    assert examine(source, Project()).ratio <= MOST_STEPS
    assert not check_source(source, Project(), active_rules(AUDIT), AUDIT).problems


# Programs of others


def _sources(paths: Iterable[Path]) -> Iterator[Source]:
    """Those files that Python can parse."""
    for path in paths:
        try:
            with tokenize.open(path) as file:
                source = Source(str(path), file.read())
            source.tree  # noqa: B018
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        yield source


def _standard_library() -> list[Path]:
    root = Path(sysconfig.get_path("stdlib"))
    return sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts)


@pytest.mark.slow
def test_a_sample_of_the_standard_library() -> None:
    paths = _standard_library()
    done = [examine(source, Project()) for source in _sources(paths[:: max(1, len(paths) // 150)])]
    assert len(done) > 100
    # A file that is analysed alone pays for the top level of what it imports.
    assert [work for work in done if work.ratio > MOST_STEPS or work.unfinished] == []


def _all_of(paths: list[Path]) -> list[Work]:
    """Examine files as one project; failures are gathered, so that one run shows them all."""
    project, failures, done = Project(paths), [], []
    for source in _sources(paths):
        try:
            done.append(examine(source, project))
        except Exception as error:
            failures.append(f"{source.path}: {error!r}")
    assert failures == []
    return done


def _report(name: str, done: list[Work]) -> None:
    nodes, steps = sum(work.nodes for work in done), sum(work.steps for work in done)
    worst = max(done, key=lambda work: work.ratio)
    print(
        f"{name}: {len(done)} files, {nodes} nodes, {sum(work.seconds for work in done):.0f} s,"
        f" {steps / nodes:.2f} steps per node, at most {worst.ratio:.1f} ({worst.path})"
    )


@pytest.mark.slow
def test_the_standard_library() -> None:
    done = _all_of(_standard_library())
    _report("standard library", done)
    assert [work for work in done if work.ratio > MOST_STEPS or work.unfinished] == []


@pytest.mark.slow
def test_installed_packages() -> None:
    root = Path(sysconfig.get_path("purelib"))
    done: list[Work] = []
    for package in sorted(root.iterdir()):
        paths = sorted(package.rglob("*.py")) if package.is_dir() else [package] if package.suffix == ".py" else []
        if paths:
            done += _all_of(paths)
    _report("installed packages", done)
    assert [work for work in done if work.ratio > MOST_STEPS or work.unfinished] == []
