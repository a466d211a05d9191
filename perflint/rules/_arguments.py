"""Where a constructor call writes its arguments."""

from __future__ import annotations

import ast

from perflint.semantics.values import Instance


def passed(call: ast.Call, made: Instance, name: str) -> ast.expr | None:
    """The expression that a constructor call passes for a parameter; None where it passes none, or hides it."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = [each for each, _ in made.arguments or ()]
    if name not in names:
        return None
    # Arguments are kept in the order of the call, positional ones first.
    position = names.index(name)
    if position >= len(call.args) or any(isinstance(each, ast.Starred) for each in call.args[: position + 1]):
        return None
    return call.args[position]
