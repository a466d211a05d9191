"""Answers that rest on a placeholder or on a call that was not followed are not kept."""

from __future__ import annotations

import ast
from functools import partial
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perflint.semantics.interpreter.frame import Budget, Frame
from perflint.semantics.interpreter.lineage import is_module, lineage
from perflint.semantics.interpreter.memory import Memory
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.values import Instance, Tensor
from perflint.source.text import Source


def model_of(folder: Path, **files: str) -> Model:
    """The model of `main.py` in a project of some files, written to a folder."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    path = folder / "main.py"
    return Model(Source(str(path), files["main"]), Project(folder / f"{name}.py" for name in files))


def returned(model: Model, function: str) -> str:
    """The value that a function of a model's file returns, in a few words."""
    node = next(node for node in ast.walk(model.module.tree) if getattr(node, "name", "") == function)
    value = next(model.value(inner.value) for inner in ast.walk(node) if isinstance(inner, ast.Return) and inner.value)
    if isinstance(value, Instance):
        return value.cls
    return value.device.name if isinstance(value, Tensor) else type(value).__name__


MAKER = "import torch\nimport main\ndef make():\n    return torch.zeros(3, device=main.DEVICE)\n"
SETTING = """import torch
from maker import make
DEVICE = "cpu"
{early}
DEVICE = "cuda"
def f():
    return make()
"""


@pytest.mark.parametrize("early", ["first = make()", "print(make().sum())", ""])
def test_answers_of_a_module_that_is_half_run_are_not_kept(tmp_path: Path, early: str) -> None:
    assert returned(model_of(tmp_path, main=SETTING.format(early=early), maker=MAKER), "f") == "CUDA"


STARS = {
    "first": "from second import *\nfrom third import *\n",
    "second": "from first import *\n",
    "third": "class Thing:\n    pass\n",
}
ASKS = ("def f():\n    return first.Thing()\n", "def g():\n    return second.Thing()\n")


@pytest.mark.parametrize("asks", [ASKS, ASKS[::-1]])
def test_names_that_circular_imports_bring_do_not_depend_on_who_asks_first(
    tmp_path: Path, asks: tuple[str, str]
) -> None:
    model = model_of(tmp_path, main="import first, second\n" + "".join(asks), **STARS)
    assert (returned(model, "f"), returned(model, "g")) == ("third.Thing", "third.Thing")


BODY = """import torch
def peek():
    return A.x
class A:
    y = peek()
    x = torch.zeros(2)
def f():
    return peek()
"""


def test_class_bodies_that_ask_for_themselves_are_whole_in_the_end(tmp_path: Path) -> None:
    assert returned(model_of(tmp_path, main=BODY), "f") == "CPU"


def test_a_long_chain_of_classes_has_its_bases(tmp_path: Path) -> None:
    chain = "".join(f"class C{n}(C{n - 1}):\n    pass\n" for n in range(1, 4800))
    model = model_of(tmp_path, main=f"import torch\nclass C0(torch.nn.Module):\n    pass\n{chain}C4799()\n")
    assert model.lineage("main.C4799") == tuple(f"main.C{n}" for n in range(4799, 4735, -1))
    assert model.lineage("main.C9")[-1] == "torch.nn.Module"


def test_answers_of_a_spent_budget_are_not_kept(tmp_path: Path) -> None:
    model = model_of(
        tmp_path, main="import torch\ndef base():\n    return torch.nn.Module\nclass M(base()):\n    pass\n"
    )
    frames = [Frame(model.view, model.module, Budget(limit), names={}) for limit in (0, 1000, 0)]
    found = []
    for frame in frames:
        frame.evaluate(ast.Name("M", ast.Load()))
        found.append((lineage(frame, "main.M"), is_module(frame, "main.M")))
    whole = (("main.M", "torch.nn.Module"), True)
    assert found == [(("main.M",), False), whole, whole]


def test_inheritance_that_goes_round_ends(tmp_path: Path) -> None:
    text = "".join(f"class C{n}(C{(n + 1) % 900}):\n    pass\n" for n in range(900))
    assert len(model_of(tmp_path, main=text).lineage("main.C5")) == 64


# The memory itself


class Graph:
    """Questions whose answers are all questions below them, over a graph that may have circles."""

    def __init__(self, below: dict[int, tuple[int, ...]], cut: int | None = None) -> None:
        self.cut = cut
        """The question that needs a call that is not followed."""
        self.memory = Memory()
        self.table: dict[int, frozenset[int]] = {}
        self.below = below
        self.computed = 0

    def ask(self, node: int) -> frozenset[int]:
        """All that is below a node, and the node."""
        return self.memory.remembered(self.table, node, partial(self._compute, node), frozenset({node}))

    def _compute(self, node: int) -> frozenset[int]:
        self.computed += 1
        if node == self.cut:
            self.memory.cut()
        return frozenset({node}).union(*map(self.ask, self.below[node]))


CIRCLES = [
    {0: (1,), 1: (2,), 2: (0,)},
    {0: (1, 2), 1: (0, 2), 2: (1, 0)},
    {0: (1,), 1: (1, 2), 2: (0, 3), 3: ()},
    # 1 is asked twice below 0, once while its own circle with 2 is open.
    {0: (1, 3), 1: (2,), 2: (1, 0), 3: (2, 4), 4: (3,)},
]


@pytest.mark.parametrize("below", CIRCLES)
def test_kept_answers_do_not_depend_on_the_first_question(below: dict[int, tuple[int, ...]]) -> None:
    for first in below:
        graph = Graph(below)
        graph.ask(first)
        for node in below:
            reached, waiting = {node}, [node]
            while waiting:
                new = set(below[waiting.pop()]) - reached
                reached |= new
                waiting.extend(new)
            assert graph.ask(node) == reached, (first, node)
        assert not graph.memory.open
        assert not graph.memory.passing


@settings(max_examples=200, deadline=None)
@example([[], [5], [3, 5], [2, 7], [], [1, 2], [], [0, 3]], [0, 7, 2, 3, 4, 5, 6, 1])
@given(st.lists(st.lists(st.integers(0, 7), max_size=4), min_size=8, max_size=8), st.permutations(range(8)))
def test_answers_of_circles_are_those_of_a_closure(edges: list[list[int]], order: list[int]) -> None:
    graph = Graph({node: tuple(each) for node, each in enumerate(edges)})
    answers = {node: graph.ask(node) for node in order}
    reached = {node: frozenset({node}) for node in graph.below}
    for _ in graph.below:
        reached = {node: reached[node].union(*(reached[each] for each in graph.below[node])) for node in graph.below}
    assert answers == reached == graph.table


def test_placeholders_are_not_kept_after_an_error() -> None:
    graph = Graph({0: (1,), 1: (2,), 2: (0, 9)})
    with pytest.raises(KeyError):
        graph.ask(0)
    graph.below[9] = ()
    assert graph.ask(1) == {0, 1, 2, 9}


def test_circles_in_circles_take_linear_time() -> None:
    # Each question is asked by all of the layer above, and the last layer asks the first one again.
    layers = 12
    below = {n: tuple(range((n // 3 + 1) * 3, (n // 3 + 2) * 3)) for n in range(3 * layers)}
    below.update(dict.fromkeys(range(3 * layers - 3, 3 * layers), (0,)))
    graph = Graph(below)
    graph.ask(0)
    # One round with the first assumption, and one that confirms the answers.
    assert graph.computed == 2 * (1 + 3 * (layers - 1))
    for node in below:
        graph.ask(node)
    assert graph.computed <= 4 * len(below)


def test_answers_that_are_never_whole_take_linear_time() -> None:
    graph = Graph({n: (n + 1,) for n in range(50)} | {50: ()}, cut=50)
    for _ in range(9):
        for node in range(51):
            graph.ask(node)
    assert graph.computed <= 6 * 51


def test_a_function_that_runs_again_keeps_the_values_of_its_decorators(tmp_path: Path) -> None:
    text = """\
    import torch
    class Job:
        def __init__(self, x):
            self.x = x
        def run(self):
            return torch.relu(self.x)
    @torch.compile(mode="reduce-overhead")
    def step(x: torch.Tensor) -> torch.Tensor:
        return Job(x).run()
    class Jobs:
        def __init__(self, batches):
            self.batches = batches
        def run(self):
            return [step(x) for x in self.batches]
    def run(batches):
        return Jobs(batches).run()
    """
    model = model_of(tmp_path, main=dedent(text))
    assert [place[1] for place in model.compiled_functions] == [8, 5]
