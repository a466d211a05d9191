"""Which code runs while a module is made, on the host still."""

from __future__ import annotations

import ast

from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source

CODE = """
import torch
from torch import nn
from typing import Callable

class Mixin:
    def __init__(self):
        self.update("made")
    def update(self, word):
        self._fill("made")
    def _fill(self, word):
        _scale("made")
    def also_run(self, word):
        "runs"

class Layer(nn.Linear, Mixin):
    def __init__(self):
        self.also_run("made")
        self.passed_on("made")
        self.reset_parameters()
        self.hook(self.handed)
        fill: Callable = self.bound
        start = self.bound_twice
        kept = self.bound_and_kept
        fill("made")
        start("made")
        self.later = kept
    def bound(self, word):
        "made"
    def of_part(self):
        "made"
    def of_other(self):
        "runs"
    def _init_weights(self, part):
        part.of_part()
        fill = part.bound
        fill("made")
    def use(self, part):
        part.of_other()
    def bound_twice(self, word):
        "runs"
    def bound_and_kept(self, word):
        "runs"
    def again(self):
        start = self.bound_twice
        start("runs")
    def reset_parameters(self):
        "made"
    def forward(self, x):
        self.also_run("runs")
        return "runs"
    def merged(self, other):
        other.passed_on("runs")
    def passed_on(self, word):
        "runs"
    def handed(self):
        "runs"
    def unused(self):
        "runs"

class Loss:
    def __init__(self, model):
        self._read("runs")
    def _read(self, word):
        "runs"

def _scale(word):
    "made"

def scale(word):
    "runs"

class Norm(nn.Module):
    def __init__(self):
        scale("made")
        _both("made")
        _at_import("made")

def _both(word):
    "runs"

def _at_import(word):
    "runs"

def use():
    _both("runs")

_at_import("runs")
"""


def test_what_only_constructors_call_makes_the_module() -> None:
    source = Source("layers.py", CODE)
    project = Project([])
    project.adopt(source)
    model = Model(source, project)
    seen = {
        f"{node.lineno}: {node.value}": model.makes_module(node)
        for node in model.nodes(ast.Constant)
        if node.value in ("made", "runs")
    }
    assert len(seen) == 33
    assert seen == {place: place.endswith("made") for place in seen}
