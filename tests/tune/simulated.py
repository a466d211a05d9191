"""Run the programs of `programs/` as they are and tuned, where a GPU is simulated or there is one.

    python -m tests.tune.simulated OUT [--gpu] [PROGRAM...]

It is a process of its own, as a simulation lasts until its process ends. OUT becomes a JSON object with a sentence for
each program: the refusal, the fault, or "equal".
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from perflint.frozen import replace
from perflint.tune.changes import without_graphs
from perflint.tune.graphs.outlining import Model, Seen, outlined, outlined_backward
from perflint.tune.graphs.reached import Called, first_line
from perflint.tune.refused import Refused

PROGRAMS = Path(__file__).parent / "programs"
EQUAL = "equal"
FAULTS = (RuntimeError, AssertionError, TypeError, ValueError, AttributeError)


def tuned(text: str, outline: Callable[..., str] = outlined) -> str:
    """A program with its graph. Each call of a function of its own is one that a run has seen. Raises Refused.

    A run has executed all lines but those with the comment `not run`, and called functions with the comment
    `called again` several times. Lines with a comment such as `clears optimizer` have cleared the gradients of it
    through a model. At lines with `fails`, the making of a graph has failed. Names that lines with `moves` bind are
    another number in each step.
    """
    tree = ast.parse(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    idle = {number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# not run")}
    helpers = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.startswith("Graphed")]
    idle |= {line for each in helpers for line in range(each.lineno, (each.end_lineno or 0) + 1)}
    steps = {
        call.lineno
        for call in calls
        if call.lineno not in idle and isinstance(call.func, ast.Attribute) and _steps(call)
    }
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    called = [
        Called("a.py", call.lineno, "a.py", first_line(each))
        for call in calls
        for each in functions
        if each.name in (getattr(call.func, "id", ""), getattr(call.func, "attr", ""))
        or (each.name == "forward" and _is_model(call))
    ]
    # torch calls the functions that are given to it from the lines that call torch.
    lambdas = [each for each in ast.walk(tree) if isinstance(each, ast.Lambda)]
    scheduled = [call.lineno for call in calls if ast.unparse(call.func) == "scheduler.step"]
    called += [Called("a.py", line, "a.py", each.lineno) for line in scheduled for each in lambdas]
    lines = {call.lineno for call in calls} - idle
    ran_calls = [call for call in calls if call.lineno not in idle]
    backwards = [("a.py", call.lineno) for call in ran_calls if getattr(call.func, "attr", "").endswith("backward")]
    owners = [("a.py", first_line(each) if isinstance(each, ast.FunctionDef) else 1) for each in (tree, *functions)]
    models = [
        Model(
            "a.py", call.lineno, "a.py", call.lineno, "", 1, tuple((*each, ast.unparse(call.func)) for each in owners)
        )
        for call in calls
        if _is_model(call)
    ]
    rows = text.splitlines()
    again = [("a.py", first_line(each)) for each in functions if rows[each.lineno - 1].endswith("# called again")]
    clears = [
        ("a.py", number, "a.py", call.lineno)
        for number, row in enumerate(rows, 1)
        for call in calls
        if call.lineno in steps
        and ast.unparse(call.func)[: -len(".step")] in re.split(", | and ", row.partition("# clears ")[2])
    ]
    clears += [("a.py", number, "", 0) for number, row in enumerate(rows, 1) if row.endswith("and others")]
    seen = Seen({"a.py": steps}, called, models, (), False, False, {"a.py": lines}, False, backwards, again, clears)
    moving = [("a.py", line, row.split()[0]) for row in rows if row.endswith("# moves") for _, line in owners]
    seen = replace(seen, moving=moving, failing=[("a.py", row.strip()) for row in rows if row.endswith("# fails")])
    return outline("a.py", {"a.py": text}, seen)


def _steps(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    return name.endswith(".step") and "scheduler" not in name


def _is_model(call: ast.Call) -> bool:
    return ast.unparse(call.func).removeprefix("self.") in ("model", "network", "other")


@cache
def ran(text: str) -> list[Any]:
    """The numbers that a program shows, its final state and its random numbers."""
    import torch

    torch.manual_seed(0)
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, "a.py", "exec"), names)
    states = [*names["model"].state_dict().values()]
    states += [
        each for state in names["optimizer"].state.values() for each in state.values() if isinstance(each, torch.Tensor)
    ]
    random = [torch.get_rng_state().tolist(), torch.cuda.get_rng_state().tolist()]
    return [names["shown"], [each.tolist() for each in states], random]


def judged(text: str, outline: Callable[..., str] = outlined) -> str:
    """The sentence for a program."""
    import torch

    try:
        new = tuned(text, outline)
    except Refused as refused:
        return f"{refused.line}: {refused.reason}"
    with suppress(Refused):
        while outline is outlined_backward:
            new = tuned(new, outline)
    with replays() as count:
        graphs = ran(new)
    if len(count) < 3:
        return f"only {len(count)} replays"
    if graphs != ran(without_graphs(new)):
        return "the graph does not compute what its eager steps do"
    before = ran(text)
    for one, other in zip(before[:2], graphs[:2], strict=True):
        for a, b in zip(_flat(one), _flat(other), strict=True):
            if not torch.allclose(a, b, 1e-4, 1e-5):
                return f"the original has {a}, the tuned program {b}"
    on_cpu = text.replace('"cuda"', '"cpu"')
    return EQUAL if ran(on_cpu) == ran(tuned(on_cpu, outline)) else "on a CPU, the tuned program differs"


@contextmanager
def replays() -> Iterator[list[None]]:
    """A list that gets an item for each replay of a graph."""
    import torch

    made: list[None] = []
    kind: Any = torch.cuda.CUDAGraph
    replay = kind.replay

    def counted(graph: Any) -> None:
        made.append(None)
        replay(graph)

    kind.replay = counted
    try:
        yield made
    finally:
        kind.replay = replay


def _flat(values: Any) -> list[Any]:
    import torch

    return [torch.tensor(each, dtype=torch.float64) for each in values]


def simulate() -> None:
    """Have this process simulate a GPU from now on."""
    # One that is there would do what is to be simulated.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import torch  # noqa: F401

    from perflint.tracer import simulation
    from tests.fixes import graphs

    simulation.start(lambda what, how: None)
    graphs.install()


def compute_the_same() -> None:
    """Have the GPU compute the same in each run."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    import torch

    torch.use_deterministic_algorithms(True, warn_only=True)


def main(target: str, *parts: str) -> None:
    """Write the sentences."""
    (compute_the_same if "--gpu" in parts else simulate)()
    parts = tuple(part for part in parts if part != "--gpu")
    found = {}
    for path in sorted(PROGRAMS.glob("*.py")):
        if not parts or path.stem in parts:
            try:
                found[path.stem] = judged(path.read_text("utf-8"))
            except FAULTS:
                found[path.stem] = traceback.format_exc()
            try:
                found[f"{path.stem} backward"] = judged(path.read_text("utf-8"), outlined_backward)
            except FAULTS:
                found[f"{path.stem} backward"] = traceback.format_exc()
            Path(target).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
