"""Tests for a level of logging that is off by default."""

from __future__ import annotations

import ast

from perflint.semantics.structure import last_name

_OFF = frozenset({"DEBUG", "NOTSET"})


def is_low(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> bool | None:
    """The outcome of a comparison for which a logger writes debug messages; None if it compares something else.

    So True for `logger.level <= logging.DEBUG`, and False for `logger.getEffectiveLevel() > logging.DEBUG`.
    """
    if _is_level(left) and last_name(right) in _OFF:
        return isinstance(operator, (ast.Eq, ast.Is, ast.Lt, ast.LtE))
    if last_name(left) in _OFF and _is_level(right):
        return isinstance(operator, (ast.Eq, ast.Is, ast.Gt, ast.GtE))
    return None


def _is_level(node: ast.expr) -> bool:
    """True for `logger.level` and `logging.getLogger().getEffectiveLevel()`."""
    return last_name(node) in ("level", "getEffectiveLevel") and "log" in ast.unparse(node).lower()
