"""Whether a value must be on the CPU: an environment, another process or a decision of all processes needs it."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflint.semantics import conventions
from perflint.semantics.destinations import Use
from perflint.semantics.structure import last_name, names_in, walk

if TYPE_CHECKING:
    from perflint.semantics.model import Model

_COLLECTIVES = frozenset("all_reduce broadcast reduce".split())


class Demand:
    """Who needs the values of one file."""

    def __init__(self, model: Model) -> None:
        self._model: Model = weakref.proxy(model)
        self._shared: dict[ast.AST, list[tuple[int, set[str]]]] = {}

    def is_on_cpu(self, node: ast.expr) -> bool:
        """Whether the CPU needs the value of a read or copy, so that only its time could change."""
        if self._is_asked_for(node):
            return True
        use = self._model.destinations.of(node)
        return use in (Use.ACTION, Use.BYTES) or (use is Use.TEST and self._decides_for_all(node))

    def _is_asked_for(self, node: ast.expr) -> bool:
        """Whether a test around a copy asks for the CPU: `if self.cpu_offload: x = x.cpu()`."""
        inner: ast.AST = node
        for outer in self._model.ancestors(node):
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return False
            if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test:
                is_body = inner is outer.body or (isinstance(outer.body, list) and inner in outer.body)
                if any(map(conventions.asks_for_cpu, _flags(outer.test, is_body))):
                    return True
            inner = outer
        return False

    def _decides_for_all(self, node: ast.expr) -> bool:
        """Whether a collective has filled a tensor, so that its value decides for all processes.

        `all_reduce(flag)`, then `if flag.item(): break`.
        """
        function, names = self._model.function(node), names_in(node)
        if function is None:
            return False
        known = self._shared.get(function)
        if known is None:
            calls = (call for call in walk(function) if isinstance(call, ast.Call) and call.args)
            shared = [call for call in calls if last_name(call) in _COLLECTIVES]
            known = self._shared[function] = [(call.lineno, names_in(call.args[0])) for call in shared]
        return any(line < node.lineno and not names.isdisjoint(given) for line, given in known)


def _flags(test: ast.expr, outcome: bool) -> Iterator[str]:
    """The last names of the flags that are set if a test comes out as `outcome`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _flags(test.operand, not outcome)
    elif isinstance(test, ast.BoolOp) and outcome is isinstance(test.op, ast.And):
        for value in test.values:
            yield from _flags(value, outcome)
    elif outcome and isinstance(test, (ast.Name, ast.Attribute)):
        yield last_name(test)
