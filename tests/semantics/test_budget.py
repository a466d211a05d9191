"""Where the budget of a file ends, a check that goes on from the run of a summary knows what one from the start knows."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from perflint.semantics.callers.kept import summaries
from perflint.semantics.interpreter import analysis
from perflint.semantics.model import LAST, Model, summary_of
from perflint.semantics.project import Project
from perflint.source.text import Source

STALE = """\
import torch
from helpers import moved
class Net:
    def read(self):
        return self.mask
    def build(self, x):
        self.mask = moved(x)
def use(net: Net):
    return net.read()
def run():
    net = Net()
    net.build(moved(torch.ones(3)))
    return use(net)
"""
"""`read` and `use` run again, since `build` sets the attribute after them."""
HELPERS = "import torch\ndef moved(x):\n    return x.to('cuda')\n"
MOST = 121
"""Steps that are more than a check of the file takes."""


def told(folder: Path, goes_on: bool) -> tuple[dict[str, str], int]:
    """The values in a file, and the rounds of its summaries from whose run its check went on."""
    project = Project(sorted(folder.glob("*.py")))
    path = folder / "stale.py"
    if goes_on:
        summaries(project).awaited.add(path)
        summary_of(project, path)
    source = Source(str(path), STALE)
    project.adopt(source)
    model = Model(source, project)
    rounds = model.run.analysis.rounds
    nodes = [node for node in ast.walk(model.module.tree) if isinstance(node, ast.expr)]
    return {f"{node.lineno}: {ast.unparse(node)}": repr(model.value(node)) for node in nodes}, rounds


def test_a_check_that_goes_on_knows_what_one_from_the_start_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stale.py").write_text(STALE)
    (tmp_path / "helpers.py").write_text(HELPERS)
    known = set()
    for steps in range(0, MOST, 2):
        monkeypatch.setattr(analysis, "_steps", lambda view, module, steps=steps: steps)
        from_start, goes_on = told(tmp_path, False), told(tmp_path, True)
        assert goes_on == (from_start[0], LAST + 1), steps
        known.add(str(from_start[0]))
    assert len(known) >= 3
