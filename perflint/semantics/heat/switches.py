"""Switches that nothing turns on: `os.getenv("DUMP", "0") == "1"`, parameters and attributes with one value."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

from perflint.semantics.binders import How
from perflint.semantics.callers.constants import constant_given, constant_kept
from perflint.semantics.callers.fields import constant_of_field
from perflint.semantics.facts import conventions
from perflint.semantics.memo import once_per_node
from perflint.semantics.structure import FunctionInfo, children, last_name, path_of
from perflint.semantics.values import Const

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred

_OFF = frozenset({"", "0", "false", "off", "no", "none"})
_SET_BY_LAUNCHERS = ("RANK", "SIZE", "SLURM", "DIST", "DDP")
"""Parts of names of variables that launchers of several processes set."""
_CONVERSIONS: dict[str, Callable[[Any], object]] = {"int": int, "bool": bool, "str": str}
_METHODS = frozenset({"lower", "upper", "strip", "casefold"})
_BEGINS = frozenset({"startswith", "endswith"})
_FAULTS = (TypeError, ValueError, OverflowError)
"""The errors of converting a constant: `int(1e999)` raises OverflowError."""
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, items: item in items,
}


class _Unknown(Exception):
    """The value of an expression depends on more than switches."""


_Switch = Callable[[ast.expr], object]
"""The value of a switch that nothing turns on. Raises _Unknown for other expressions."""


def needs_switch(test: ast.expr) -> bool:
    """True if a test is false by default: of an environment variable that is off, of an option that few models use."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
        compared = test.comparators[0]
        if isinstance(compared, ast.Constant) and conventions.is_rare_option(compared.value):
            return True
    if isinstance(test, (ast.Constant, ast.List, ast.Tuple, ast.Set)):
        # A list that is empty at first may grow.
        return False
    try:
        return not _value(test, _default)
    except (_Unknown, *_FAULTS):
        return False


def is_switched_off(model: Inferred, test: ast.expr, outcome: bool) -> bool:
    """True if a test never has an outcome, since the parameters and attributes in it have one value in all calls."""
    settled = _settled(model, test)
    return settled is not None and settled is not outcome


def is_off(model: Inferred, setting: ast.expr) -> bool:
    """True if an argument is false in all calls: by literals, or by parameters and attributes with one value."""
    if isinstance(setting, ast.Compare) and len(setting.ops) == 1:
        compare = _COMPARISONS.get(type(setting.ops[0]))
        left, right = model.value(setting.left), model.value(setting.comparators[0])
        if isinstance(left, Const) and isinstance(right, Const) and isinstance(setting.ops[0], (ast.Eq, ast.NotEq)):
            return compare is not None and not compare(left.value, right.value)
    return is_switched_off(model, setting, True)


@once_per_node
def _settled(model: Inferred, test: ast.expr) -> bool | None:
    """The only outcome of a test; None if it may have both."""
    function = model.function(test)
    if function is None or isinstance(function, ast.Lambda):
        return None
    asked = _asked(model, test)
    info = model.module.defined_by(function) if asked else None
    if info is None or model.callers is None or not _depends_on(test, asked):
        return None
    given: dict[str, ast.Constant] = {}
    for text, node in asked.items():
        if isinstance(node, ast.Name):
            constant = constant_given(model, info, node.id)
        elif _is_of_self(node):
            constant = constant_kept(model, _owner(info), node.attr)
        else:
            constant = constant_of_field(model, node.attr)
        if constant is None:
            return None
        given[text] = constant

    def value(node: ast.expr) -> object:
        text = path_of(node)
        if text not in given:
            raise _Unknown
        return given[text].value

    try:
        return bool(_value(test, value))
    except (_Unknown, *_FAULTS):
        return None


def _asked(model: Inferred, test: ast.expr) -> dict[str, ast.Name | ast.Attribute]:
    """The parameters, the attributes of the object, and those of other objects, in a test."""
    found: dict[str, ast.Name | ast.Attribute] = {}
    waiting: list[ast.AST] = [test]
    while waiting:
        node = waiting.pop()
        path = path_of(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if isinstance(node, ast.Name):
            if node.id != "self" and _is_parameter(model, node):
                found[path] = node
        elif isinstance(node, ast.Attribute) and path:
            if path.partition(".")[0] not in model.module.imports:
                found[path] = node
        elif isinstance(node, ast.Call):
            waiting += [node.func.value if isinstance(node.func, ast.Attribute) else node.func, *node.args]
        else:
            waiting += children(node)
    return found


def _is_of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _owner(info: FunctionInfo) -> str:
    """The class whose method a function is, or is in; empty if there is none."""
    while info.outer is not None:
        info = info.outer
    return info.owner


def _is_parameter(model: Inferred, name: ast.Name) -> bool:
    """True if a name is a parameter of a function, which binds it nowhere else."""
    return [each.how for each in model.symbols.variable(name).bindings] == [How.PARAMETER]


def _depends_on(test: ast.expr, names: Container[str]) -> bool:
    """True if some names and constants settle a test. Other files are asked for the names, which takes longer."""

    def ask(node: ast.expr) -> object:
        if path_of(node) not in names:
            raise _Unknown
        return ""

    try:
        _value(test, ask)
    except _FAULTS:
        # A text cannot stand for a number.
        return True
    except _Unknown:
        return False
    return True


def _value(node: ast.expr, switch: _Switch) -> Any:
    """The value of an expression if nothing turns its switches on. Raises _Unknown, and `_FAULTS`."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [_value(each, switch) for each in node.elts]
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        return _COMPARISONS[type(node.ops[0])](_value(node.left, switch), _value(node.comparators[0], switch))
    if not isinstance(node, ast.Call):
        return switch(node)
    if node.keywords:
        raise _Unknown
    if isinstance(node.func, ast.Name) and node.func.id in _CONVERSIONS and len(node.args) == 1:
        return _CONVERSIONS[node.func.id](_value(node.args[0], switch))
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS and not node.args:
        return getattr(str(_value(node.func.value, switch)), node.func.attr)()
    if isinstance(node.func, ast.Attribute) and node.func.attr in _BEGINS and len(node.args) == 1:
        return getattr(_text(node.func.value, switch), node.func.attr)(_text(node.args[0], switch))
    return switch(node)


def _text(node: ast.expr, switch: _Switch) -> str:
    value = _value(node, switch)
    if not isinstance(value, str):
        raise _Unknown
    return value


def _default(call: ast.expr) -> object:
    """The default, which must be off, of `os.getenv(name, default)`. Raises _Unknown."""
    if not isinstance(call, ast.Call):
        raise _Unknown
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
