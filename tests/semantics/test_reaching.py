"""Reaching definitions hold whatever definition a run of the program reads, and take linear time."""

from __future__ import annotations

import ast
import contextlib
from random import Random
from typing import Any

import pytest

from perflint.semantics.dataflow.reaching import Definition, reaching


def function(text: str) -> ast.FunctionDef:
    tree = ast.parse(text)
    node = tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def nodes(definition: Definition | None) -> set[ast.AST]:
    """The places that a definition, or those it joins, stand for."""
    found: set[ast.AST] = set()
    seen: set[Definition] = set()
    stack = [definition] if definition is not None else []
    while stack:
        each = stack.pop()
        if each not in seen:
            seen.add(each)
            stack += each.sources
            if each.node is not None:
                found.add(each.node)
    return found


def lines(text: str, name: str = "x") -> dict[int, set[int]]:
    """For each line that loads a name, the lines that may have given it its value."""
    found = reaching(function(text))
    return {
        load.lineno: {node.lineno for node in nodes(definition)}  # type: ignore[attr-defined]
        for load, definition in found.loads.items()
        if load.id == name
    }


CASES = {
    "a later assignment ends an earlier one": ("def f():\n x = 1\n x = 2\n use(x)\n", {4: {3}}),
    "branches join": ("def f(a):\n x = 1\n if a:\n  x = 2\n use(x)\n", {5: {2, 4}}),
    "a branch that returns does not": ("def f(a):\n x = 1\n if a:\n  x = 2\n  return\n use(x)\n", {6: {2}}),
    "a parameter": ("def f(x):\n use(x)\n", {2: {1}}),
    "a loop leads back": ("def f(a):\n x = 1\n for i in a:\n  use(x)\n  x = 2\n use(x)\n", {4: {2, 5}, 6: {2, 5}}),
    "what an iteration ends with": ("def f(a):\n for i in a:\n  x = 1\n  use(x)\n  x = 2\n use(x)\n", {4: {3}, 6: {5}}),
    "break": ("def f(a):\n while a:\n  x = 1\n  if a():\n   break\n  x = 2\n use(x)\n", {7: {3, 6}}),
    "an endless loop is left by break only": (
        "def f(a):\n x = 0\n while True:\n  x = 1\n  if a():\n   break\n  x = 2\n use(x)\n",
        {8: {4}},
    ),
    "continue": ("def f(a):\n x = 0\n for i in a:\n  use(x)\n  x = 1\n  if i:\n   continue\n  x = 2\n", {4: {2, 5, 8}}),
    "a failing try": ("def f():\n try:\n  x = 1\n  x = 2\n except E:\n  use(x)\n use(x)\n", {6: {3, 4}, 7: {3, 4}}),
    "finally sees all": ("def f():\n try:\n  x = 1\n  x = 2\n finally:\n  use(x)\n use(x)\n", {6: {3, 4}, 7: {4}}),
    "match": ("def f(a):\n x = 0\n match a:\n  case 1:\n   x = 1\n  case [x]:\n   pass\n use(x)\n", {8: {2, 5, 6}}),
    "comprehensions have names of their own": ("def f(a):\n x = 1\n y = [x for x in a]\n use(x)\n", {3: {3}, 4: {2}}),
    "a walrus may not run": ("def f(a):\n x = 1\n a and (x := 2)\n use(x)\n", {4: {2, 3}}),
    "augmented": ("def f():\n x = 1\n x += 2\n use(x)\n", {4: {2, 3}}),
    "with": ("def f(a):\n with a as (x, y):\n  use(x)\n", {3: {2}}),
    "del": ("def f():\n x = 1\n del x\n use(x)\n", {}),
    "elif": ("def f(a):\n if a:\n  x = 1\n elif a():\n  x = 2\n else:\n  x = 3\n use(x)\n", {8: {3, 5, 7}}),
    "else of a loop": ("def f(a):\n x = 0\n for i in a:\n  x = 1\n  break\n else:\n  x = 2\n use(x)\n", {8: {4, 7}}),
}


@pytest.mark.parametrize("name", CASES)
def test_which_definitions_reach(name: str) -> None:
    text, expected = CASES[name]
    assert lines(text) == expected


def test_jumps_beyond_those_told_apart_lose_nothing() -> None:
    jumps = "".join(f"  x = {n}\n  if a({n}):\n   break\n" for n in range(20))
    found = lines(f"def f(a):\n while True:\n{jumps} use(x)\n")
    assert found[3 + 60] == {3 + 3 * n for n in range(20)}


def test_names_of_outer_scopes_and_shared_names() -> None:
    found = reaching(function("def f():\n global y\n y = 1\n def g():\n  return x\n use(x, y)\n"))
    assert {load.id for load in found.loads} == {"y"} and found.shared == {"y"}


# A run of the program as the judge: what it reads has reached.


def _program(random: Random, depth: int, in_loop: bool) -> str:
    """A block of random statements on two names, one step indented."""
    name = random.choice("xy")
    simple = [f"{name} = 0", f"{name} = 0", f"use({name})", f"use({name})", f"decide() and ({name} := 0)"]
    simple += [f"use([{name} for {name} in (1,)])", "if decide():\n fail()", "if decide():\n return"]
    if in_loop:
        simple += ["if decide():\n break", "if decide():\n continue"]

    def block(loop: bool = in_loop) -> str:
        return _program(random, depth - 1, loop)

    def compound() -> str:
        forms = [
            lambda: f"if decide():\n{block()}else:\n{block()}",
            lambda: f"if decide():\n{block()}elif decide():\n{block()}",
            lambda: f"for i in range(3):\n{block(True)}else:\n{block()}",
            lambda: f"while decide():\n{block(True)}",
            lambda: f"while True:\n{block(True)} if decide() or late():\n  break\n",
            lambda: f"try:\n{block()}except ValueError:\n{block()}else:\n{block()}finally:\n{block(False)}",
            lambda: f"try:\n{block()}except ValueError:\n{block()}",
            lambda: f"match decide():\n case True:\n{_indent(block())} case _:\n{_indent(block())}",
        ]
        return random.choice(forms)()

    statements = [
        compound() if depth and random.random() < 0.4 else random.choice(simple) for _ in range(random.randint(1, 4))
    ]
    return "".join(_indent(statement) for statement in statements)


def _indent(text: str) -> str:
    return "".join(f" {line}\n" for line in text.splitlines())


def _made_known(tree: ast.Module) -> None:
    """Let each value be the line that it was made in, and each `use` say which load it reads."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.NamedExpr)):
            node.value = ast.Constant(node.lineno)
        elif (
            isinstance(node, ast.Call) and node.args and isinstance(load := node.args[0], ast.Name) and load.id in "xy"
        ):
            node.args.append(ast.Constant((load.lineno, load.col_offset)))
    ast.fix_missing_locations(tree)


@pytest.mark.parametrize("seed", range(60))
def test_what_a_run_reads_has_reached(seed: int) -> None:
    random = Random(seed)
    text = f"def f(x, y):\n{_program(random, 4, False)} use(x)\n use(y)\n"
    loads = reaching(function(text)).loads.items()
    reached = {(load.lineno, load.col_offset): {node.lineno for node in nodes(d)} for load, d in loads}  # type: ignore[attr-defined]
    read: set[tuple[tuple[int, int], int]] = set()
    decided = 0

    def decide() -> bool:
        nonlocal decided
        decided += 1
        return decided < 60 and random.random() < 0.5

    def fail() -> None:
        raise ValueError

    def use(value: int, load: tuple[int, int] | None = None) -> None:
        if load is not None:
            read.add((load, value))

    tree = ast.parse(text)
    _made_known(tree)
    scope: dict[str, Any] = {"decide": decide, "late": lambda: decided >= 60, "use": use, "fail": fail}
    exec(compile(tree, "<program>", "exec"), scope)
    for _ in range(40):
        decided = 0
        with contextlib.suppress(ValueError):
            scope["f"](1, 1)
    for load, line in read:
        assert line in reached[load], f"{load} read what line {line} made:\n{text}"


# Growth


def _steps(body: str) -> int:
    return reaching(function("def f(a):\n" + body)).steps


def _many(pattern: str, count: int) -> str:
    return "".join(f"{pattern.replace('#', str(n))}\n" for n in range(count))


GROWING = {
    "statements": lambda n: _many(" x# = a\n use(x#)", n),
    "one loop": lambda n: " for i in a:\n" + _many("  x# = use(x#)", n),
    "a loop of breaks": lambda n: (
        " for i in a:\n" + _many("  x# = use(i)\n  if x#:\n   break", n) + _many(" use(x#)", n)
    ),
    "branches": lambda n: _many(" if a:\n  x# = 1\n use(x#)", n),
    "elif": lambda n: " if a:\n  pass\n" + _many(" elif a == #:\n  x# = #", n) + _many(" use(x#)", n),
    "tries": lambda n: _many(" try:\n  x# = a\n except E:\n  use(x#)\n finally:\n  use(x#)", n),
    "one try": lambda n: " try:\n" + _many("  x# = a", n) + " finally:\n" + _many("  use(x#)", n),
    "loops": lambda n: _many(" for i in a:\n  x = use(x)\n  if x:\n   continue\n  y = x", n),
}


@pytest.mark.parametrize("name", GROWING)
def test_growth_is_linear(name: str) -> None:
    small, large = _steps(GROWING[name](50)), _steps(GROWING[name](400))
    assert large < 10 * small
