"""The attributes that a format shows: "val" of `"{meter.val:.3f}".format(meter=meter)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from string import Formatter


def attributes_shown(call: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    """The arguments of `"…".format(…)` of which the text shows an attribute, with its name."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "format" or not isinstance(func.value, ast.Constant):
        return
    if not isinstance(func.value.value, str) or "." not in func.value.value:
        return
    given: dict[str, ast.expr] = {str(index): argument for index, argument in enumerate(call.args)}
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    try:
        fields = [name for _, name, _, _ in Formatter().parse(func.value.value) if name]
    except ValueError:
        # It is no format.
        return
    for field in fields:
        key, _, attribute = field.partition(".")
        if key in given and attribute.isidentifier():
            yield given[key], attribute
