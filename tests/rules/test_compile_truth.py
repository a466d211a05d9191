"""What the rules of graph breaks claim, held against the installed torch.

Each example of a page is run under torch.compile on the CPU, where a graph break is an error: the bad one
must break, the good one must not. The backend only runs what it is given, so that nothing is compiled.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import textwrap
import warnings
from typing import Any

import pytest

from tests.rules.harness import cases, lint, python_blocks, sections

torch = pytest.importorskip("torch")

CALLS = {
    "scalar-read": "normalise(torch.randn(8))",
    "tensor-branch": "clip(torch.ones(8))",
    "print-or-log": "forward(torch.randn(8))",
    "dynamic-shape-op": "mean_of_valid(torch.randn(8), torch.arange(8) - 3)",
    "autograd-in-graph": "force(torch.randn(8))",
    "rnn-in-graph": "model(torch.randn(5, 2, 8))",
    "untraceable-call": "forward(torch.randn(8))",
    "size-from-tensor": "positions(*[torch.tensor([3, 5]), 5][: positions.__wrapped__.__code__.co_argcount])",
    "break-in-loop": "model(torch.randn(2, 64))",
}
"""What to call in the examples of each page."""

BREAKS = {case.rule.name: case for case in cases() if case.family == "compile" and case.rule.name in CALLS}


@pytest.fixture(autouse=True)
def eager_backend(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let torch.compile capture graphs, and only run them."""
    torch._dynamo.reset()
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    yield
    torch._dynamo.reset()


def breaks(text: str, call: str) -> bool:
    """True if a call of what a text defines breaks a graph."""
    names: dict[str, Any] = {"torch": torch}
    exec(compile(text, "<example>", "exec"), names)
    torch.manual_seed(0)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eval(call, dict(names))
        torch._dynamo.reset()
        try:
            with torch._dynamo.error_on_graph_break(True):
                eval(call, dict(names))
        except (torch._dynamo.exc.Unsupported, torch._dynamo.exc.UserError):
            return True
    return False


@pytest.mark.parametrize("name", sorted(CALLS))
def test_bad_breaks_and_good_does_not(name: str) -> None:
    page = sections(BREAKS[name].rule)
    (bad,), (good,) = python_blocks(page["Bad"]), python_blocks(page["Good"])
    assert breaks(bad, CALLS[name])
    assert not breaks(good, CALLS[name])


ONE_LINE = {
    "TPF701": """
        x * x.sum().item()
        x * float(x.sum())
        x * int(x.sum())
        x[0].tolist()
        labels[0].tolist()
        torch.equal(x, x + 1)
        x.allclose(x + 1)
    """,
    "TPF702": """
        x if x.sum() > 0 else -x
        (x.sum() > 0) and x
        not x.sum() > 0
        3 in x
        any(part.sum() > 0 for part in x.unbind())
        bool(x.sum() > 0)
        0 < x.sum() < 1
        torch.is_nonzero(x.sum())
    """,
    "TPF703": """
        print("text")
        print(x, flush=True)
        logging.getLogger("a").debug("text")
        logging.info("text")
        warnings.warn("text")
        x + len(f"{x.sum()}")
        x + len(str(x))
        x + len(repr(x))
        x + len("%s" % x)
    """,
    "TPF704": """
        x.nonzero()
        torch.where(x > 0)
        torch.masked_select(x, x > 0)
        x[x > 0]
        torch.unique(x)
        torch.bincount(labels[0])
        torch.nn.functional.one_hot(labels)
        x.repeat_interleave(labels[0], dim=0)
        torch.argwhere(x)
        torch.linalg.lstsq(x, x)
    """,
    "TPF706": """
        (x * 2).sum().backward(inputs=[x])
        torch.autograd.grad((x * 2).sum(), x)
    """,
    "TPF707": """
        torch.nn.LSTM(4, 4)(x)
        torch.nn.GRU(4, 4)(x)
    """,
    "TPF708": """
        time.time()
        time.perf_counter()
        time.sleep(0)
        datetime.datetime.now()
        random.random()
        random.choice([1, 2])
        x + numpy.random.choice(3)
        open("/dev/null").close()
        os.path.exists("/dev/null")
        json.dumps({"a": 1})
        copy.deepcopy(x)
        gc.collect()
        torch.manual_seed(0)
        torch.get_rng_state()
        torch.set_num_threads(1)
        x.is_inference()
        x.to_sparse().sum()
        sorted([x.sum(), x.mean()])
        torch.nn.Linear(4, 4)(x)
    """,
    "TPF709": """
        torch.arange(count)
        torch.zeros(count)
        torch.rand(count, 2)
        x.new_zeros(count)
        x.split(count)
        x.view(count, -1)
        x.repeat(count, 1)
        x.topk(count)
        x.roll(count)
        torch.nn.functional.pad(x, (0, count))
        x[:count]
        [0 for _ in range(count)]
        math.sqrt(count)
    """,
}
"""Expressions that break a graph, by the rule that says so."""

NO_BREAKS = """
    x.sum() + x.shape[0] + len(x) + x.numel()
    max(x.sum(), x.mean())
    torch.where(x > 0, x, 0)
    torch.tensor([x.sum(), x.mean()])
    torch.nn.functional.one_hot(labels, 8)
    x.repeat_interleave(2, dim=0)
    torch.repeat_interleave(x, labels[0], dim=0, output_size=6)
    torch.nonzero_static(x, size=3)
    torch.histc(x)
    x.cpu() + 1
    x.detach().numpy()
    torch.distributions.Normal(x, 1.0).log_prob(x)
    x + len(f"{x.shape}")
    random.randint(0, 3)
    torch.nn.ReLU()(x)
    copy.deepcopy([1, 2])
    torch.rand(x.shape[0])
    x.detach() if x.requires_grad else x
"""


def function(expression: str) -> str:
    """A compiled function that returns what an expression gives."""
    return f"""
import copy, datetime, gc, json, logging, math, numpy, os, random, time, warnings
import torch

@torch.compile
def run(x: torch.Tensor, labels: torch.Tensor):
    x = x + 1
    count = (labels > 2).sum() - 1
    return x, {expression}
"""


def lines(text: str) -> list[str]:
    return textwrap.dedent(text).strip().splitlines()


CALL = "run(torch.randn(4, 4), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]))"
RULES = [case.rule for case in cases() if case.family == "compile"]


@pytest.mark.slow
@pytest.mark.parametrize(("code", "expression"), [(c, e) for c, text in ONE_LINE.items() for e in lines(text)])
def test_what_is_said_to_break_does(code: str, expression: str) -> None:
    text = function(expression)
    found = {finding.code for finding in lint(text, RULES, "audit")}
    assert found & {code, "TPF705"}, f"{expression} is not found"
    assert breaks(text, CALL.replace("4)", "4, requires_grad=True)", 1) if code == "TPF706" else CALL)


@pytest.mark.slow
@pytest.mark.parametrize("expression", lines(NO_BREAKS))
def test_what_does_not_break_is_left_alone(expression: str) -> None:
    text = function(expression)
    assert not breaks(text, CALL)
    assert not lint(text, RULES, "audit")


def test_every_rule_of_breaks_is_held_to_torch() -> None:
    module = importlib.import_module("perflint.rules.compile._breaks")
    every = {case.rule.name for case in cases() if issubclass(case.rule, module.BreakRule)}
    assert every == set(CALLS)


def test_a_break_in_a_loop_leaves_the_function_eager() -> None:
    """The claim of `break-in-loop`: no graph at all of the function with the loop."""
    graphs: list[int] = []

    def count(module: Any, inputs: Any) -> Any:
        graphs.append(len(module.graph.nodes))
        return module.forward

    def looped(x: Any) -> Any:
        for part in x.unbind():
            x = x + part
            print("turn")
        return x

    def straight(x: Any) -> Any:
        x = x + 1
        print("turn")
        return x * 2

    def tried(x: Any) -> Any:
        try:
            x = x * x.sum().item()
        except RuntimeError:
            x = x + 1
        return x + 1

    for run, expected in ((looped, 0), (tried, 0), (straight, 2)):
        torch._dynamo.reset()
        graphs.clear()
        with contextlib.redirect_stdout(io.StringIO()):
            torch.compile(run, backend=count)(torch.randn(4, 4))
        assert len(graphs) == expected, run.__name__


def test_a_counter_compiles_until_the_limit_and_a_buffer_once() -> None:
    """The claim of `counter-recompiles`."""
    page = sections(next(case.rule for case in cases() if case.rule.name == "counter-recompiles"))
    counts = []
    for block in (*python_blocks(page["Bad"]), *python_blocks(page["Good"])):
        compiled: list[object] = []

        def count(module: Any, inputs: Any, compiled: list[object] = compiled) -> Any:
            compiled.append(module)
            return module.forward

        names: dict[str, Any] = {}
        exec(block.replace("torch.compile(Net())", "Net()"), names)
        torch._dynamo.reset()
        model = torch.compile(names["model"], backend=count)
        for _ in range(15):
            model(torch.randn(2, 8))
        counts.append(len(compiled))
    assert counts == [8, 1]


def test_a_tensor_that_is_bound_anew_compiles_once_more_at_most() -> None:
    """Why `self.table = self.table.to(…)` in a compiled forward is no rule."""

    class Table(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.randn(4, 4, dtype=torch.float64)

        def forward(self, x: Any) -> Any:
            self.table = self.table.to(x.dtype)
            return x * self.table

    compiled: list[object] = []

    def count(module: Any, inputs: Any) -> Any:
        compiled.append(module)
        return module.forward

    model = torch.compile(Table(), backend=count)
    for _ in range(12):
        model(torch.randn(4, 4))
    assert len(compiled) == 2


def test_what_is_compiled_before_is_found_again() -> None:
    """The claim of `compile-in-hot-path`: calling torch.compile anew does not compile anew."""
    compiled: list[object] = []

    def count(module: Any, inputs: Any) -> Any:
        compiled.append(module)
        return module.forward

    for _ in range(5):
        torch.compile(lambda x: x + 1, backend=count)(torch.randn(4))
    assert len(compiled) == 1


def test_whole_graphs_capture_numbers_and_sizes() -> None:
    """The claim of `scalar-read` and `dynamic-shape-op` about `fullgraph=True`."""
    for expression in ("x * x.sum().item()", "x.nonzero()", "torch.unique(x)"):
        text = function(expression).replace("@torch.compile", "@torch.compile(fullgraph=True)")
        assert not breaks(text, CALL)
        assert not lint(text, RULES, "audit")
