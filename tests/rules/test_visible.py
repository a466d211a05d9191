"""Which names only their function can see."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from perflint.rules._visible import is_private
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source

NAMES = """
import torch

at_the_top = 1
def outer(given):
    global at_the_top, declared
    at_the_top = declared = 1
    own = [each for each in given]
    for looped in own: pass
    read_inside = changed_inside = bound_inside = in_a_class = in_a_lambda = given_inside = 1
    def inner(given_inside):
        nonlocal changed_inside
        changed_inside = read_inside
        bound_inside = 2
        def innermost(): return at_the_top, two_deep
        return bound_inside + given_inside
    two_deep = 3
    class Inside:
        attribute = in_a_class
    return lambda: in_a_lambda

def opened():
    hidden = 1
    return locals()
"""


def privacy(text: str) -> dict[str, bool]:
    """By name, whether all its uses outside of inner functions are private."""
    source = Source("example.py", text)
    model = Model(source, Project([Path(source.path)]))
    found: dict[str, bool] = {}
    for name in model.nodes(ast.Name):
        function = model.function(name)
        if isinstance(function, ast.FunctionDef) and function.name in ("outer", "opened"):
            found[name.id] = found.get(name.id, True) and is_private(model, name)
    return found


@pytest.mark.parametrize("name", ["given", "own", "each", "looped", "bound_inside", "given_inside"])
def test_names_of_one_function(name: str) -> None:
    assert privacy(NAMES)[name]


@pytest.mark.parametrize(
    "name",
    ["at_the_top", "declared", "read_inside", "changed_inside", "in_a_class", "in_a_lambda", "two_deep", "hidden"],
)
def test_names_that_others_see(name: str) -> None:
    assert not privacy(NAMES)[name]


def test_names_of_modules_and_classes_are_seen_by_others() -> None:
    source = Source("example.py", "a = 1\nclass C:\n    b = a\n")
    model = Model(source, Project([Path(source.path)]))
    assert [is_private(model, name) for name in model.nodes(ast.Name)] == [False] * 3
