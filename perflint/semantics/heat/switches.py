"""Switches of the environment that are off unless a user sets them: `os.getenv("DUMP", "0") == "1"`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from perflint.semantics.structure import last_name

_OFF = frozenset({"", "0", "false", "off", "no", "none"})
_SET_BY_LAUNCHERS = ("RANK", "SIZE", "SLURM", "DIST", "DDP")
"""Parts of names of variables that launchers of several processes set."""
_CONVERSIONS: dict[str, Callable[[Any], object]] = {"int": int, "bool": bool, "str": str}
_METHODS = frozenset({"lower", "upper", "strip", "casefold"})
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.In: lambda item, items: item in items,
}


class _Unknown(Exception):
    """The value of an expression depends on more than an environment variable."""


def needs_switch(test: ast.expr) -> bool:
    """True if a test is about an environment variable and false by its default, which is off."""
    if isinstance(test, ast.Constant):
        return False
    try:
        return not _value(test)
    except (_Unknown, TypeError, ValueError):
        return False


def _value(node: ast.expr) -> Any:
    """The value of an expression if the environment sets nothing. Raises _Unknown, TypeError, ValueError."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [_value(each) for each in node.elts]
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        return _COMPARISONS[type(node.ops[0])](_value(node.left), _value(node.comparators[0]))
    if not isinstance(node, ast.Call) or node.keywords:
        raise _Unknown
    if isinstance(node.func, ast.Name) and node.func.id in _CONVERSIONS and len(node.args) == 1:
        return _CONVERSIONS[node.func.id](_value(node.args[0]))
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS and not node.args:
        return getattr(str(_value(node.func.value)), node.func.attr)()
    return _default(node)


def _default(call: ast.Call) -> object:
    """The default, which must be off, of `os.getenv(name, default)`. Raises _Unknown."""
    owner = last_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    is_asked = last_name(call) == "getenv" or (last_name(call) == "get" and owner == "environ")
    if not is_asked or len(call.args) != 2:
        raise _Unknown
    name, default = call.args
    if not isinstance(name, ast.Constant) or not isinstance(default, ast.Constant):
        raise _Unknown
    is_off = str(default.value).lower() in _OFF
    if not is_off or any(part in str(name.value) for part in _SET_BY_LAUNCHERS):
        raise _Unknown
    return default.value
