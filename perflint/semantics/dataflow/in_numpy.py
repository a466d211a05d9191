"""Copies to the CPU whose values NumPy works on: the copy must happen, and only its time could change."""

from __future__ import annotations

import ast
import weakref
from bisect import bisect_right
from typing import TYPE_CHECKING

from perflint.findings import Heat
from perflint.frozen import dataclass
from perflint.semantics.binders import LOOPS
from perflint.semantics.dataflow.destinations import Destinations, Use
from perflint.semantics.heat.training import helps_to_train
from perflint.semantics.memo import remembered
from perflint.semantics.structure import FUNCTIONS, children, last_name, root_of, walk

if TYPE_CHECKING:
    from perflint.semantics.heated import Heated

_TENSORS = frozenset(
    {"torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.asarray", "torch.Tensor.new_tensor"}
)
_LAYOUTS = frozenset("append extend copy astype reshape transpose list tuple zip".split())
"""Functions and methods that copy an array or a list, or change its layout."""
_MOST_STEPS = 60
"""Statements behind a copy that are looked at."""
_AVOIDABLE = frozenset({Use.TEST, Use.SIZE, Use.INDEX, Use.KEY, Use.SUM, Use.LOG})
"""Uses for which the GPU can compute on, or the CPU can know the value."""


@dataclass(frozen=True, slots=True)
class _Step:
    """The names that a statement reads, those that it binds, and those of which it makes a tensor again."""

    line: int
    reads: frozenset[str]
    binds: frozenset[str]
    returned: frozenset[str]


class InNumpy:
    """The copies of one file whose values NumPy works on."""

    def __init__(self, model: Heated, destinations: Destinations) -> None:
        self._model: Heated = weakref.proxy(model)
        self._destinations = destinations

    def needs(self, copy: ast.Call) -> bool:
        """True if NumPy gets the value of a copy in code that does not train, and no tensor is made of it again.

        Not of values that a list gathers from step to step, since these can be copied after the loop.
        """
        array = self._array(copy)
        if array is None:
            return False
        gathered = {Use.LIST} if self._is_gathered(copy) else set()
        if self._destinations.near(array) <= _AVOIDABLE | gathered:
            return False
        return not helps_to_train(self._model, copy) and not self._comes_back(array)

    def _array(self, copy: ast.Call) -> ast.expr | None:
        """The expression that makes an array of a copy, or the copy if its name is made an array later; else None."""
        node: ast.expr = copy
        while True:
            if isinstance(node, ast.Call) and last_name(node) == "numpy":
                return node
            outer = self._model.parent(node)
            if isinstance(outer, ast.Call) and node in outer.args[:1] and _is_numpy(self._model.target(outer)):
                return outer
            call = self._model.parent(outer) if isinstance(outer, ast.Attribute) else None
            if isinstance(outer, ast.Attribute) and outer.attr in ("data", "T"):
                node = outer
            elif isinstance(call, ast.Call) and call.func is outer:
                node = call
            else:
                return node if self._is_array_later(outer) else None

    def _is_array_later(self, statement: ast.AST | None) -> bool:
        """True if a copy is given a name of which NumPy makes an array: `x = x.cpu()`, then `x.numpy()`."""
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            return False
        for load in self._destinations.later(statement.targets[0]):
            outer = self._model.parent(load)
            if isinstance(outer, ast.Attribute) and outer.attr == "numpy":
                return True
            if isinstance(outer, ast.Call) and load in outer.args and _is_numpy(self._model.target(outer)):
                return True
        return False

    def _is_gathered(self, node: ast.AST) -> bool:
        """True if a list gathers one value in each step: a loop of steps is around the place, or the caller's is."""
        is_in_loop = False
        for outer in self._model.ancestors(node):
            if isinstance(outer, FUNCTIONS):
                break
            if isinstance(outer, LOOPS):
                is_in_loop = True
                if self._model.heat(outer) is not Heat.HOT:
                    return True
        return not is_in_loop

    def _comes_back(self, array: ast.expr) -> bool:
        """True if the function makes a tensor of an array, or of a result that NumPy computes from it."""
        statement: ast.AST = array
        for outer in self._model.ancestors(array):
            if isinstance(outer, ast.Call) and statement is not outer.func:
                if self._model.target(outer) in _TENSORS:
                    return True
                if not self._keeps(outer):
                    return False
            statement = outer
            if isinstance(outer, ast.stmt):
                break
        names = _bound_by(statement)
        for step in self._after(statement):
            if not names:
                break
            if not names.isdisjoint(step.returned):
                return True
            if not names.isdisjoint(step.reads):
                names |= step.binds
        return False

    def _keeps(self, call: ast.Call) -> bool:
        """True if a call is one of NumPy, or only copies its arguments: the GPU could compute the same."""
        return _is_numpy(self._model.target(call)) or last_name(call) in _LAYOUTS

    def _after(self, statement: ast.AST) -> list[_Step]:
        """The statements of a function behind one of them, in the order of the text."""
        function = self._model.function(statement)
        if function is None or not isinstance(statement, ast.stmt):
            return []
        steps = self._steps(function)
        first = bisect_right(steps, statement.lineno, key=lambda step: step.line)
        return steps[first : first + _MOST_STEPS]

    @remembered
    def _steps(self, function: ast.AST) -> list[_Step]:
        steps = [self._step(node) for node in walk(function) if isinstance(node, ast.stmt) and _is_simple(node)]
        return sorted(steps, key=lambda step: step.line)

    def _step(self, statement: ast.stmt) -> _Step:
        part = statement.iter if isinstance(statement, (ast.For, ast.AsyncFor)) else statement
        reads, returned = self._read(part)
        return _Step(statement.lineno, frozenset(reads), frozenset(_bound_by(statement)), frozenset(returned))

    def _read(self, root: ast.AST) -> tuple[set[str], set[str]]:
        """The names in a part of a statement, and those of which it makes a tensor.

        Not the arguments of functions other than those of NumPy: these compute on the CPU on purpose.
        """
        reads: set[str] = set()
        returned: set[str] = set()
        stack = [(root, reads)]
        while stack:
            node, names = stack.pop()
            if isinstance(node, ast.Name):
                names.add(node.id)
            elif isinstance(node, ast.Call):
                if self._model.target(node) in _TENSORS:
                    names = returned
                elif not self._keeps(node):
                    stack += [(child, set()) for child in children(node) if child is not node.func]
                    stack.append((node.func, names))
                    continue
            stack += [(child, names) for child in children(node)]
        return reads, returned


def _is_numpy(target: str) -> bool:
    return target.startswith("numpy.")


def _is_simple(statement: ast.stmt) -> bool:
    return isinstance(
        statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.For, ast.AsyncFor)
    )


def _bound_by(statement: ast.AST) -> set[str]:
    """The names that a statement binds or adds to: `x = …`, `x[0] = …`, `xs.append(…)`."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
        targets = [statement.target]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        is_list = isinstance(function, ast.Attribute) and function.attr in ("append", "extend")
        return {root_of(function)} - {"self"} if is_list else set()
    else:
        return set()
    bound: set[str] = set()
    while targets:
        target, *targets = targets
        if isinstance(target, (ast.Tuple, ast.List)):
            targets += target.elts
        else:
            # `xs[i] = …` adds to `xs`, and leaves `i` as it is.
            bound.add(root_of(target.value if isinstance(target, ast.Starred) else target))
    return bound - {"self", ""}
