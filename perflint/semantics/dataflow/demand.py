"""Decides if a value must be on the CPU: an environment, another process or a decision of all processes needs it."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflint.semantics.dataflow.destinations import Destinations, Use
from perflint.semantics.dataflow.origins import may_meet
from perflint.semantics.facts import conventions
from perflint.semantics.memo import once_per_node, remembered
from perflint.semantics.structure import calls_in, last_name, names_in, walk

if TYPE_CHECKING:
    from perflint.semantics.heated import Heated

_COLLECTIVES = frozenset("all_reduce broadcast reduce".split())
_TO_CPU = frozenset("cpu numpy tolist".split())
"""Methods that copy a tensor to the CPU."""
_NUMBERS = frozenset("tensor empty zeros full LongTensor IntTensor".split())
"""Functions that make a tensor of numbers."""
_LONGEST_WAY = 3
"""Names and methods that a tensor passes before it is copied."""
_MOST_CALLS = 4
"""Functions that call each other in a row, and help the first to turn results into arrays."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Demand:
    """The code that needs the values of one file."""

    def __init__(self, model: Heated, destinations: Destinations) -> None:
        self._model: Heated = weakref.proxy(model)
        self._destinations = destinations

    def is_on_cpu(self, node: ast.expr) -> bool:
        """True if the CPU needs the value of a read or copy, so that only its time could change."""
        if self._is_asked_for(node) or self._is_sent(node):
            return True
        use = self._destinations.of(node)
        if use is Use.TEST:
            return self._decides_for_all(node) and not self._only_chooses(node)
        return use in (Use.ACTION, Use.BYTES)

    def is_result(self, node: ast.expr) -> bool:
        """True if a tensor is copied to the CPU at once, or belongs to a function that turns results into arrays.

        Such a function runs no model and copies tensors to NumPy, in a call that comes to the node, too. Functions that
        only it calls belong to it.
        """
        return self._is_copied(node) or self._makes_results(node)

    def _is_copied(self, node: ast.expr, left: int = _LONGEST_WAY) -> bool:
        """True if the first thing that happens to a tensor is its copy to the CPU."""
        outer = self._model.parent(node)
        if isinstance(outer, ast.Attribute):
            if outer.attr != "detach":
                return outer.attr in _TO_CPU
            call = self._model.parent(outer)
            return bool(left) and isinstance(call, ast.Call) and self._is_copied(call, left - 1)
        if not left or not isinstance(outer, ast.Assign) or not isinstance(outer.targets[0], ast.Name):
            return False
        end = (outer.end_lineno or 0, outer.end_col_offset or 0)
        loads = self._destinations.later(outer.targets[0])
        after = next((load for load in loads if (load.lineno, load.col_offset) > end), None)
        return after is not None and self._is_copied(after, left - 1)

    def _makes_results(self, node: ast.expr | ast.stmt, left: int = _MOST_CALLS) -> bool:
        function = self._outermost(node)
        if function is None:
            return False
        place = (node.lineno, node.col_offset)
        for copy in self._copies(function):
            first, later = (node, copy) if place <= (copy.lineno, copy.col_offset) else (copy, node)
            if may_meet(self._model, first, later):
                return True
        return left > 0 and self._helps_results(function, left)

    @remembered
    def _copies(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Attribute]:
        """The copies of tensors to NumPy in a function that runs no model."""
        if self._model.heat_map.work.of(function.body).any:
            return []
        return [node for node in walk(function) if isinstance(node, ast.Attribute) and _copies_to_array(node)]

    @remembered
    def _helps_results(self, function: ast.FunctionDef | ast.AsyncFunctionDef, left: int) -> bool:
        info = self._model.module.defined_by(function)
        callers = self._model.heat_map.callers(info) if info is not None else []
        return bool(callers) and all(self._makes_results(call, left - 1) for call in callers)

    def _outermost(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The outermost function around a node, or None."""
        found = None
        for outer in self._model.ancestors(node):
            if isinstance(outer, _FUNCTIONS):
                found = outer
        return found

    def _is_asked_for(self, node: ast.expr) -> bool:
        """True if a test around a copy asks for the CPU, or for a file: `if self.cpu_offload: x = x.cpu()`."""
        inner: ast.AST = node
        for outer in self._model.ancestors(node):
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return False
            if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test:
                is_body = inner is outer.body or (isinstance(outer.body, list) and inner in outer.body)
                if any(map(conventions.asks_for_cpu, _flags(outer.test, is_body))) or _is_cpu(outer.test, is_body):
                    return True
                if _is_file(outer.test, is_body):
                    return True
            inner = outer
        return False

    def _is_sent(self, node: ast.expr) -> bool:
        """True for a number that another process sends: `n = torch.tensor([k])`, `broadcast(n, src=0)`, `n.item()`.

        The tensor only carries it.
        """
        function, names = self._model.function(node), names_in(node)
        sent = () if function is None else _sent_numbers(self._model, function)
        return any(line < node.lineno and name in names for line, name in sent)

    def _only_chooses(self, node: ast.expr) -> bool:
        """True if all tests of a value only replace it with a number, as `torch.where` does.

        False if a loop or an expression tests it, and if other code depends on a test.
        """
        statement = next((outer for outer in self._model.ancestors(node) if isinstance(outer, ast.stmt)), None)
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            return False
        target = statement.targets[0]
        for load in self._destinations.later(target):
            for outer in self._model.ancestors(load):
                if isinstance(outer, (ast.IfExp, ast.While, ast.Assert)):
                    return False
                if isinstance(outer, ast.If):
                    is_test = any(inner is load for inner in walk(outer.test))
                    if is_test and not all(_sets_number(each, target.id) for each in (*outer.body, *outer.orelse)):
                        return False
                    break
        return True

    def _decides_for_all(self, node: ast.expr) -> bool:
        """True if a collective has filled a tensor, so that its value decides for all processes.

        `all_reduce(flag)`, then `if flag.item(): break`.
        """
        function, names = self._model.function(node), names_in(node)
        shared = () if function is None else _shared(self._model, function)
        return any(line < node.lineno and not names.isdisjoint(given) for line, given in shared)


@once_per_node
def _shared(model: Heated, function: ast.AST) -> list[tuple[int, set[str]]]:
    """The lines in which a function calls collectives, with the names in the tensors that these fill."""
    calls = [call for call in calls_in(function) if call.args and last_name(call) in _COLLECTIVES]
    return [(call.lineno, names_in(call.args[0])) for call in calls]


@once_per_node
def _sent_numbers(model: Heated, function: ast.AST) -> set[tuple[int, str]]:
    """The lines in which a function broadcasts tensors of a few numbers that it makes, with their names."""
    made: set[str] = set()
    for node in walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if any(isinstance(each, ast.Call) and last_name(each) in _NUMBERS for each in _choices(node.value)):
                made.add(node.targets[0].id)
    found: set[tuple[int, str]] = set()
    for call in calls_in(function):
        if last_name(call) == "broadcast":
            given = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "tensor")]
            found |= {(call.lineno, each.id) for each in given if isinstance(each, ast.Name) and each.id in made}
    return found


def _choices(node: ast.expr) -> tuple[ast.expr, ...]:
    return (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node,)


def _copies_to_array(method: ast.Attribute) -> bool:
    """True for `x.cpu().numpy` and `x.cpu().detach().numpy`."""
    inner: ast.expr = method.value
    while method.attr == "numpy" and isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        if inner.func.attr == "cpu":
            return True
        inner = inner.func.value
    return False


def _sets_number(statement: ast.stmt, name: str) -> bool:
    """True for `name = -1`."""
    if not isinstance(statement, ast.Assign):
        return False
    value = statement.value.operand if isinstance(statement.value, ast.UnaryOp) else statement.value
    is_name = all(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
    return is_name and (isinstance(value, ast.Constant) or last_name(value) in ("inf", "nan"))


def _is_cpu(test: ast.expr, outcome: bool) -> bool:
    """True if a setting is "cpu" where a test comes out as `outcome`: `if backend == "cpu"`, not `x.device.type`."""
    if not isinstance(test, ast.Compare) or len(test.ops) > 1 or last_name(test.left) in ("type", "device"):
        return False
    value = test.comparators[0]
    is_equal = isinstance(test.ops[0], ast.Eq) is outcome and isinstance(test.ops[0], (ast.Eq, ast.NotEq))
    return is_equal and isinstance(value, ast.Constant) and value.value == "cpu"


def _is_file(test: ast.expr, outcome: bool) -> bool:
    """True if the name of a file is given where a test comes out as `outcome`: `if output_dir is not None`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and outcome:
        return any(_is_file(each, True) for each in test.values)
    if not isinstance(test, ast.Compare) or not isinstance(test.comparators[0], ast.Constant):
        return False
    is_given = isinstance(test.ops[0], ast.IsNot if outcome else ast.Is) and test.comparators[0].value is None
    name = last_name(test.left) if isinstance(test.left, (ast.Name, ast.Attribute)) else ""
    return is_given and bool(conventions.writes_to(name.lower()))


def _flags(test: ast.expr, outcome: bool) -> Iterator[str]:
    """The last names of the flags that are set if a test comes out as `outcome`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _flags(test.operand, not outcome)
    elif isinstance(test, ast.BoolOp) and outcome is isinstance(test.op, ast.And):
        for value in test.values:
            yield from _flags(value, outcome)
    elif outcome and isinstance(test, (ast.Name, ast.Attribute)):
        yield last_name(test)
