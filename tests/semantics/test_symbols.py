"""The symbol table of a file, compared with the `symtable` of the standard library."""

from __future__ import annotations

import ast
import symtable
import sys
import sysconfig
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflint.semantics.scanning import scan
from perflint.semantics.symbols import Scope, Symbols, Variable

STDLIB = Path(sysconfig.get_path("stdlib"))
KINDS = {ast.ListComp: "listcomp", ast.SetComp: "setcomp", ast.DictComp: "dictcomp", ast.GeneratorExp: "genexpr"}
IMPLICIT = {"__class__", "__classdict__", "__static_attributes__", "__conditional_annotations__"}
"""Names that the compiler adds."""
INLINED = (ast.ListComp, ast.SetComp, ast.DictComp) if sys.version_info >= (3, 12) else ()
"""Comprehensions that the compiler makes part of the code around: it has no tables for them."""
LAZY_ANNOTATIONS = sys.version_info >= (3, 14)
"""True if annotations are scopes of their own."""


def table(text: str) -> Symbols:
    """The symbols of a text."""
    tree = ast.parse(text)
    return Symbols(tree, scan(tree))


def ours(symbols: Symbols, scope: Scope, owner: str = "") -> tuple[Any, ...]:
    """A scope by kind and line with the role of each name in it, and the scopes inside it."""
    node = scope.node
    owner = node.name if isinstance(node, ast.ClassDef) else owner
    names: dict[str, str] = {}
    if scope is symbols.module:
        declared = [pair for each in symbols.scopes for pair in each.declared.items()]
        names = {name: "global" for name, statement in declared if isinstance(statement, ast.Global)}
    for variable in symbols.variables:
        if scope in variable.seen_in:
            name = variable.name
            if owner.strip("_") and name.startswith("__") and not name.endswith("__"):
                name = f"_{owner.lstrip('_')}{name}"
            is_global = variable.scope is symbols.module
            names[name] = "global" if is_global else "local" if variable.scope is scope else "free"
    inner = [ours(symbols, each, owner) for each in symbols.scopes if each.outer is scope]
    line = 0 if isinstance(node, ast.Module) else node.lineno
    kind = KINDS.get(type(node)) or ("lambda" if isinstance(node, ast.Lambda) else getattr(node, "name", "top"))
    return kind, line, sorted((name, role) for name, role in names.items() if name not in IMPLICIT), sorted(inner)


def theirs(found: symtable.SymbolTable) -> tuple[Any, ...]:
    """The same of a table of the standard library."""
    is_module = found.get_type() == "module"
    names = [
        (
            symbol.get_name(),
            "global" if symbol.is_global() or is_module else "local" if symbol.is_local() else "free",
        )
        for symbol in found.get_symbols()
        if (
            symbol.is_referenced()
            or symbol.is_assigned()
            or symbol.is_parameter()
            or symbol.is_imported()
            or symbol.is_annotated()
            or symbol.is_declared_global()
            or symbol.is_nonlocal()
        )
        and not symbol.get_name().startswith(".")
        and symbol.get_name() not in IMPLICIT
    ]
    inner = [theirs(child) for child in found.get_children()]
    return found.get_name(), found.get_lineno(), sorted(names), sorted(inner)


def agree(text: str) -> None:
    """Compare both tables of a text."""
    if any(isinstance(node, INLINED) for node in ast.walk(ast.parse(text))):
        return
    symbols = table(text)
    assert ours(symbols, symbols.module) == theirs(symtable.symtable(text, "file.py", "exec"))


CASES = """
x = 1
def f(a, *b, c=x, **d): return a, b, c, d, x, free
---
def f():
    x = 1
    class C:
        x = 2
        y = [x for _ in range(x)]
        def g(self): return x
    return C
---
def f():
    x = 1
    def g():
        nonlocal x
        x = 2
        return lambda: x
    return g
---
def f():
    global x
    x = 1
    def g(): return x
    return g
---
class C:
    global x
    x = 1
    def g(self): return x
---
def f():
    x = 1
    class C:
        global x
        y = [x for _ in range(x)]
    return C
---
def f(xs):
    if any((y := x) for x in xs): return y
    return [[z := x for x in y] for y in xs]
---
def f():
    global y
    return [y := x for x in range(3)]
---
def f(e):
    try: import a.b as c, d.e
    except E as e: del e
    with open(e) as (g, *h): pass
    for i, j.k in h: i += 1
    match h:
        case [1, *rest]: pass
        case {"a": a, **others}: pass
        case C(b=[d]) as whole: pass
---
@decorator
def f(a: A = default) -> R:
    v: V = 1
    w: W
    (o): O
    return v
---
class C(Base, metaclass=M):
    __private = 1
    def f(self, __other): return self, __private
---
x = lambda x, y=x: [x for x in x for y in x if y]
---
async def f(): return {k: v async for k, v in g() if v} | {w for w in h}
---
def f():
    def g():
        def h(): return x
        return h
    x = 1
---
from m import *
from n import p as q
""".split("---")


@pytest.mark.skipif(LAZY_ANNOTATIONS, reason="annotations are scopes of their own")
@pytest.mark.parametrize("text", CASES)
def test_scopes_agree_with_the_compiler(text: str) -> None:
    agree(text)


@pytest.mark.skipif(LAZY_ANNOTATIONS, reason="annotations are scopes of their own")
@pytest.mark.parametrize(
    "module",
    "ast dataclasses argparse typing inspect functools enum asyncio/base_events contextlib doctest pdb tarfile".split(),
)
def test_scopes_of_the_standard_library_agree_with_the_compiler(module: str) -> None:
    text = (STDLIB / f"{module}.py").read_text(encoding="utf-8")
    # Otherwise the compiler does not look into annotations.
    agree(text.replace("from __future__ import annotations", ""))


SIMPLE = (
    *("N = E", "N: E = E", "N += E", "N, *N = E", "global N", "nonlocal N", "import N.e, e as N"),
    *("del N", "E", "f(E)"),
)
HEADS = (
    "def N(N, *N2, N3=E):",
    "class N(E):",
    "for N in E:",
    "with E as (N, e.f):",
    "async def N(N=E):",
    "@E\ndef N():",
)
EXPRESSIONS = (
    *("(N := E)", "(lambda N=E: E)", "[E for N in E if E]", "{E: E for N in E for N in E}", "f(E, E)", "N", "N", "1"),
    "(N for N in E)",
)


class Programs:
    """Makes programs of few names in all kinds of scopes."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def fill(self, text: str, depth: int) -> str:
        """A template with names and expressions."""
        parts = {"N": lambda: self.random.choice("abcd"), "E": lambda: self.expression(depth - 1)}
        return "".join(parts[each]() if each in parts else each for each in text)

    def expression(self, depth: int) -> str:
        """An expression with others inside."""
        return self.fill(self.random.choice(EXPRESSIONS), depth) if depth > 0 else self.random.choice("abcd")

    def block(self, depth: int) -> list[str]:
        """The lines of a block."""
        lines: list[str] = []
        for _ in range(self.random.randint(1, 4)):
            if depth and self.random.random() < 0.5:
                lines += self.fill(self.random.choice(HEADS), 2).split("\n")
                lines += [f"  {line}" for line in self.block(depth - 1)]
            else:
                lines.append(self.fill(self.random.choice(SIMPLE), 3))
        return lines


@pytest.mark.skipif(LAZY_ANNOTATIONS, reason="annotations are scopes of their own")
@settings(max_examples=400, deadline=None)
@given(st.randoms(use_true_random=True))
def test_scopes_of_any_program_agree_with_the_compiler(random: Random) -> None:
    text = "\n".join(Programs(random).block(3)) + "\n"
    try:
        symtable.symtable(text, "file.py", "exec")
    except SyntaxError:
        return
    agree(text)


def variable(symbols: Symbols, name: str) -> Variable:
    """The only variable of that name."""
    (found,) = (each for each in symbols.variables if each.name == name)
    return found


def test_calls_belong_to_the_function_whose_code_makes_them() -> None:
    symbols = table(
        """
a()
@b()
def outer(x=c()):
    d()
    class Inner(e()):
        f()
        def method(self):
            g(lambda: h())
    return [i() for _ in j()]
"""
    )
    by_function = {getattr(scope.node, "name", ""): calls for scope, calls in symbols.calls.items()}
    names = {name: "".join(sorted(ast.unparse(call.func) for call in calls)) for name, calls in by_function.items()}
    assert names == {"": "abc", "outer": "defij", "method": "gh"}


def test_captured_variables_are_those_that_inner_functions_mention() -> None:
    symbols = table(
        """
def outer(read, kept):
    bound, of_class, part = 0, 1, 2
    def inner():
        nonlocal bound
        bound = read
    class Held:
        use = of_class
    [kept for _ in part]
    return lambda: by_lambda
by_lambda = 3
"""
    )
    captured = {each.name for each in symbols.variables if each.is_captured and each.bindings}
    assert captured == {"read", "bound", "by_lambda"}


def test_assigned_values_are_whole() -> None:
    symbols = table("x = 1\nx, y = 2, 3\nx += 4\nx: int = 5\nfor x in z: pass\n")
    assert [ast.unparse(value) for value in variable(symbols, "x").assigned] == ["1", "2", "5"]
    assert [ast.unparse(value) for value in variable(symbols, "y").assigned] == ["3"]
    assert not list(variable(table("x, y = z\n"), "y").assigned)


def test_relative_imports_have_a_dot_for_each_level() -> None:
    symbols = table("from . import a\nfrom .b import c\nfrom ..d import e as f\nimport g.h")
    assert [(each.local, each.full) for each in symbols.imports] == [
        ("a", ".a"),
        ("c", ".b.c"),
        ("f", "..d.e"),
        ("g", "g"),
    ]
