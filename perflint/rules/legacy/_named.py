"""The places of a file that use something by its full name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.semantics.model import Model


def named(model: Model, full: frozenset[str]) -> Iterator[ast.expr]:
    """The calls, decorators and bases of classes that name something."""
    name_of = model.symbols.full_name
    for call in model.nodes(ast.Call):
        if name_of(call.func) in full:
            yield call.func
    for function in model.nodes(ast.FunctionDef):
        yield from (each for each in function.decorator_list if name_of(each) in full)
    for cls in model.nodes(ast.ClassDef):
        yield from (each for each in (*cls.bases, *cls.decorator_list) if name_of(each) in full)
