"""Loops written with `enumerate`, `tqdm`, `zip` and `while`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tests.forms.names import after_imports, blocks, code, expression, free, name, names
from tests.forms.program import Program, marked_like


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def _loops(program: Program) -> list[ast.For]:
    return [node for node in ast.walk(program.main) if isinstance(node, ast.For) and not _is_range(node.iter)]


def loops_with_enumerate(program: Program) -> None:
    """`for x in xs` as `for index, x in enumerate(xs)`"""
    for number, loop in enumerate(_loops(program)):
        if "enumerate(" not in ast.unparse(loop.iter):
            _wrap(loop, free(program.main, f"index_{number}"), "enumerate(OLD)")


def loops_with_zip(program: Program) -> None:
    """`for x in xs` as `for index, x in zip(count(), xs)`"""
    loops = _loops(program)
    count = free(program.main, "count")
    for number, loop in enumerate(loops):
        _wrap(loop, free(program.main, f"index_{number}"), f"zip({count}(), OLD)")
    if loops:
        alias = "" if count == "count" else f" as {count}"
        program.main.body[after_imports(program.main) : after_imports(program.main)] = code(
            f"from itertools import count{alias}"
        )


def _wrap(loop: ast.For, index: str, text: str) -> None:
    loop.target = ast.Tuple([ast.Name(index, ast.Store()), loop.target], ast.Store())
    loop.iter = marked_like(expression(text, OLD=loop.iter), loop.iter)


def loops_with_tqdm(program: Program) -> None:
    """`for x in xs` as `for x in tqdm(xs)`"""
    loops = _loops(program)
    if not loops or free(program.main, "tqdm") != "tqdm":
        return
    for loop in loops:
        loop.iter = marked_like(expression("tqdm(OLD)", OLD=loop.iter), loop.iter)
    program.main.body[after_imports(program.main) : after_imports(program.main)] = code("from tqdm import tqdm")


def loops_with_while(program: Program) -> None:
    """`for x in xs` as `while True` with `x = next(iterator)`, which ends at `StopIteration`"""
    _rewrite(program, _with_next)


def ranges_with_while(program: Program) -> None:
    """`for i in range(n)` as `while i < n`"""
    _rewrite(program, _with_counter)


def _rewrite(program: Program, change: Callable[[Program, ast.For, int], list[ast.stmt] | None]) -> None:
    number = 0
    for block in list(blocks(program.main)):
        for index, loop in reversed(list(enumerate(block))):
            if isinstance(loop, ast.For) and not loop.orelse:
                number += 1
                block[index : index + 1] = change(program, loop, number) or [loop]


def _with_next(program: Program, loop: ast.For, number: int) -> list[ast.stmt] | None:
    if _is_range(loop.iter):
        return None
    iterator = free(program.main, f"iterator_{number}")
    text = """
IT = iter(XS)
while True:
    try:
        TARGET = next(IT)
    except StopIteration:
        break
    BODY
"""
    made, new = code(text, IT=name(iterator), XS=loop.iter, BODY=loop.body)
    taken = next(node for node in ast.walk(new) if isinstance(node, ast.Assign) and node not in loop.body)
    taken.targets = [loop.target]
    marked_like(taken, loop)
    marked_like(taken, loop.iter)
    return [made, marked_like(marked_like(new, loop), loop.iter)]


def _with_counter(program: Program, loop: ast.For, number: int) -> list[ast.stmt] | None:
    if not _is_range(loop.iter) or not isinstance(loop.target, ast.Name):
        return None
    assert isinstance(loop.iter, ast.Call)
    given = loop.iter.args
    inside = names(loop.body)
    skips = any(isinstance(node, ast.Continue) for each in loop.body for node in ast.walk(each))
    if skips or len(given) not in (1, 2) or loop.target.id in inside.bound or names(given).read & inside.bound:
        return None
    if not all(isinstance(each, (ast.Constant, ast.Name, ast.Attribute)) for each in given):
        return None
    start = given[0] if len(given) == 2 else ast.Constant(0)
    text = "INDEX = START\nwhile INDEX < END:\n    BODY\n    INDEX += 1"
    made, new = code(text, INDEX=name(loop.target.id), START=start, END=given[-1], BODY=loop.body)
    return [made, marked_like(marked_like(new, loop), loop.iter)]
