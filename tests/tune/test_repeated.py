"""Code that may run between two steps."""

from __future__ import annotations

import ast

import pytest

from perflint.tune.graphs.repeated import Repeated

TEXT = """
def options(given):
    given.size = 1

def setup(given):
    options(given)
    for part in given:
        part.rate = 2
    return getattr(given, "loader")

def adjust(rate):
    helper(rate)

def helper(rate):
    pass

def hook(module):
    after_hook()

def after_hook():
    pass

class Model(Module):
    def __init__(self):
        self.build()

    def build(self):
        pass

    def forward(self, x):
        return self.inner(x)

    def inner(self, x):
        return x

    def unused(self):
        pass

@command()
def main(given):
    loader = setup(given)
    model = Model()
    register(hook)
    for epoch in range(3):
        train(model, loader)
        adjust(epoch)

def train(model, unused):
    for batch in unused:
        model(batch).backward()

main()
"""
LINE = TEXT.splitlines().index("        model(batch).backward()") + 1


def names(text: str, line: int) -> set[str]:
    tree = ast.parse(text)
    repeated = Repeated({"a.py": tree}, {"a.py": {line}})
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and repeated.runs(node)}


def test_functions_that_run_between_steps() -> None:
    """No code names `unused`, so other code may call it."""
    assert names(TEXT, LINE) == {"adjust", "helper", "hook", "after_hook", "forward", "inner", "train", "unused"}


def test_loops_that_hold_steps() -> None:
    tree = ast.parse(TEXT)
    repeated = Repeated({"a.py": tree}, {"a.py": {LINE}})
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
    assert {ast.unparse(each.target) for each in loops if repeated.repeats(each)} == {"epoch", "batch"}


@pytest.mark.parametrize("call", ["getattr(model, name)()", "eval(name)", "globals()[name]()", "getattr(*given)"])
def test_what_is_called_by_a_name_that_is_not_written_may_be_anything(call: str) -> None:
    text = TEXT.replace("        adjust(epoch)\n", f"        {call}\n")
    assert names(text, text.splitlines().index("        model(batch).backward()") + 1) >= {"setup", "options", "unused"}


def test_other_modules_have_none_of_the_functions() -> None:
    text = "import torchvision\nfor name in names:\n    wrap(getattr(torchvision.models, name))\n" + TEXT
    assert "setup" not in names(text, LINE + 3)
    text = text.replace("import torchvision", "from a import torchvision")
    assert "setup" in names(text, LINE + 3)


def test_without_a_loop_everything_may_run() -> None:
    text = TEXT.replace("    for batch in unused:\n        model(batch)", "    if unused:\n        model(unused)")
    text = text.replace(
        "    for epoch in range(3):\n        train(model, loader)\n        adjust(epoch)\n", "    fit(train)\n"
    )
    assert names(text, text.splitlines().index("        model(unused).backward()") + 1) >= {"setup", "options", "main"}
