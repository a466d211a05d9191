"""Graphs that are made again without the statement with which making them failed."""

from __future__ import annotations

import ast

import pytest

from perflint.frozen import replace
from perflint.tune.changes import GRAPH
from perflint.tune.evidence import Evidence
from perflint.tune.graphs.failing import failing
from perflint.tune.graphs.outlining import Seen
from perflint.tune.graphs.reached import Called
from perflint.tune.refused import Refused

PROGRAM = """
import torch
from noise import noisy

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(8):
    optimizer.zero_grad()
    x = torch.rand(6, 4)
    near = noisy(x)
    loss = model(near).mean()
    loss.backward()
    optimizer.step()
"""
NOISE = """
import torch

def noisy(x):
    found = x[x > 0.5]
    return x + found.mean()
"""
TOLD = """Traceback (most recent call last):
  File "{folder}/train.py", line {run}, in run
    captured = graph, held, self.step(*held)
                            ^^^^^^^^^^^^^^^^
  File "{folder}/train.py", line {step}, in training_step
    near = noisy(x)
           ^^^^^^^^
  File "{folder}/noise.py", line 5, in noisy
    found = x[x > 0.5]
            ~^^^^^^^^^
  File "/usr/lib/torch/functional.py", line 7, in index
    return inner()
torch.AcceleratorError: CUDA error: operation not permitted when stream is capturing

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "{folder}/train.py", line {end}, in <module>
    (loss,) = graphed_step()
torch.AcceleratorError: CUDA error: operation failed due to a previous error during capture
"""


def evidence() -> Evidence:
    lines = {node.lineno for node in ast.walk(ast.parse(PROGRAM)) if ast.unparse(node) == "optimizer.step()"}
    call = Called("train.py", PROGRAM[: PROGRAM.index("near =")].count("\n") + 1, "noise.py", 4)
    return Evidence(Seen({"train.py": lines}, [call]), (), 10.0, 1.0)


def told(tried: dict[str, str], folder: str) -> str:
    text = tried["train.py"]
    places = {"run": "captured = graph", "step": "near = noisy", "end": "graphed_step()"}
    numbers = {name: text[: text.index(part)].count("\n") + 1 for name, part in places.items()}
    return TOLD.format(folder=folder, **numbers)


@pytest.mark.parametrize("folder", ["/tmp/copy", "."])
def test_the_graph_is_made_without_what_fails(folder: str) -> None:
    known = {"train.py": PROGRAM, "noise.py": NOISE}
    tried = {**known, **GRAPH.write(known, evidence())}
    assert failing(told(tried, folder), known, tried) == ("noise.py", "found = x[x > 0.5]")
    (again,) = GRAPH.learn(told(tried, folder), known, tried)
    text = again.write(known, evidence())["train.py"]
    assert "def training_step(near):\n    loss = model(near).mean()\n    loss.backward()\n" in text
    assert text.index("    near = noisy(x)\n") > text.index("graphed_step = ")
    # The same failure again teaches nothing.
    assert not again.learn(told(tried, folder), known, tried)


def test_what_fails_in_the_model_is_refused() -> None:
    known = {"train.py": PROGRAM, "noise.py": NOISE}
    seen = replace(evidence().seen, failing=[("train.py", "loss = model(near).mean()")])
    with pytest.raises(Refused, match=r"fails while a graph is made"):
        GRAPH.write(known, replace(evidence(), seen=seen))


def test_other_failures_teach_nothing() -> None:
    known = {"train.py": PROGRAM, "noise.py": NOISE}
    text = (
        'Traceback (most recent call last):\n  File "/a/train.py", line 9, in <module>\n    1 / 0\nZeroDivisionError\n'
    )
    assert not GRAPH.learn(text, known, known)
