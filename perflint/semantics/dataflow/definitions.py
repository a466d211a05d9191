"""The assignments that a name may have its value from: reaching definitions, found on demand.

The interpreter keeps values, not their origins. This module looks for the bindings of one name
in one scope, in the order in which statements run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from perflint.frozen import dataclass, replace
from perflint.semantics.binders import COMPREHENSIONS, DEFINITIONS, Binding, How, binding_of, bound_names
from perflint.semantics.dataflow.flow import Bound, Use
from perflint.semantics.dataflow.scope_flow import Reader
from perflint.semantics.structure import GROWS, FunctionNode, calls_in, path_of, stands_in
from perflint.semantics.symbols import Symbols

Scope = ast.Module | ast.ClassDef | FunctionNode


@dataclass(frozen=True, slots=True)
class Definitions:
    """The bindings that reach a use of a name, by line."""

    bindings: tuple[Binding, ...] = ()
    is_open: bool = True
    """True if the use can also be reached without any of these bindings."""
    scope: Scope | None = None
    """The function, class or module that the name belongs to."""


def definitions(symbols: Symbols, node: ast.AST, path: str) -> Definitions:
    """The bindings of a path that reach its use at `node`."""
    root = path.partition(".")[0]
    around = symbols.scope_around(node)
    variable = symbols.resolve(around, root)
    use, is_later = node, False
    for scope in around.chain:
        outer = scope.node
        is_home = scope is variable.scope
        if isinstance(outer, ast.Module):
            # A function sees the bindings that the module ends with: calls are assumed to come after all of it.
            return _reaching(symbols, outer, path, None if is_later else use)
        if isinstance(outer, COMPREHENSIONS):
            if is_home:
                return Definitions((variable.bindings[0],), False) if path == root else Definitions()
        elif isinstance(outer, ast.ClassDef):
            found = Definitions() if is_later else _reaching(symbols, outer, path, use)
            if found.bindings:
                return found
            use = outer
            if is_home and scope.outer is not None:
                variable = symbols.resolve(scope.outer, root)
        elif is_home:
            return _reaching(symbols, outer, path, use, is_later)
        elif not isinstance(outer, ast.Lambda):
            use, is_later = outer, True
    return Definitions()


def _reaching(symbols: Symbols, scope: Scope, path: str, use: ast.AST | None, is_later: bool = False) -> Definitions:
    """The bindings that reach a node, or the end of a scope; with `is_later`, all of the scope's if none does."""
    way = _Way(path, use)
    way.enter(scope)
    origins = way.flow.behind(way.found)
    if is_later and all(bound.node is _GONE for bound in origins):
        origins = [bound for bound in way.flow.bounds if bound.node is not None]
    bindings = [_binding(symbols, bound) for bound in origins]
    found = sorted(filter(None, bindings), key=lambda binding: binding.line)
    return Definitions(tuple(dict.fromkeys(found)), not bindings or None in bindings, scope)


_GONE = ast.Pass()
"""The binding of a path that has no value, or an unknown one."""


class _Way(Reader):
    """Reads a scope for one path as if that were a name, and finds its bindings at a use or at the end."""

    _binds_declared = True

    def __init__(self, path: str, use: ast.AST | None) -> None:
        super().__init__(lambda item: True)
        self._path, self._asked = path, use
        self._met: Bound | None = None
        self.bind(path, _GONE)

    @property
    def found(self) -> Bound | None:
        """The binding that the use sees, or that the scope ends with."""
        return self._now.get(self._path) if self._asked is None else self._met

    def bind(self, name: str, node: ast.AST | None, value: ast.expr | None = None, whole: bool = True) -> Bound:
        if node is not None and node is self._asked:
            self._met = self._now.get(self._path)
        return super().bind(name, node, value, whole) if name == self._path else Bound(name, node)

    def read(self, *nodes: ast.AST | None) -> None:
        super().read(*nodes)
        for call in calls_in(*filter(None, nodes)):
            if self._is_grown(call):
                self._grow(call, call.args[-1])

    def _grow(self, node: ast.AST, value: ast.expr | None) -> None:
        before = self._now[self._path]
        before.into.append(self.bind(self._path, node, value, False))

    def _is_grown(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            return node.func.attr in GROWS and path_of(node.func.value) == self._path
        return isinstance(node, ast.Subscript) and path_of(node.value) == self._path

    def _name(self, node: ast.AST) -> str:
        return self._path if path_of(node) == self._path else ""

    def _bound_names(self, node: ast.AST) -> Iterable[str]:
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Store):
            return ()
        path = path_of(node)
        is_bound = self._path in bound_names(node) or (path and f"{self._path}.".startswith(f"{path}."))
        return [self._path] if is_bound or self._is_grown(node) else ()

    def _inside(self, function: ast.Lambda) -> list[ast.AST]:
        return [function.body, function.args]

    def _use(self, node: Use, inner: dict[str, Bound]) -> None:
        if node is self._asked:
            self._met = inner.get(self._path) or self._now.get(self._path)
        super()._use(node, inner)

    def _target(self, target: ast.expr, value: ast.expr | None, whole: bool = True) -> None:
        path = path_of(target)
        if path and self._path.startswith(f"{path}."):
            self.bind(self._path, _GONE)
        else:
            super()._target(target, value, whole)
            if self._is_grown(target):
                self._grow(target, value)


def _binding(symbols: Symbols, bound: Bound) -> Binding | None:
    """The binding that a reader noted; None if it leaves no value, or an unknown one."""
    node = bound.node
    if isinstance(node, (ast.Call, ast.Subscript)):
        return Binding(How.GROWN, node, node.lineno, bound.value, False)
    if isinstance(node, ast.expr):
        found = binding_of(node, symbols.ancestors(node))
        return found if found is not None and found.how is not How.DELETED else None
    if isinstance(node, ast.alias):
        statement = next(each.statement for each in symbols.imports if each.alias is node)
        return Binding(How.IMPORT, statement, statement.lineno)
    if node is None or node is _GONE:
        return None
    known = next(each for each in symbols.variable(node).bindings if each.node is node)
    return replace(known, value=bound.value, whole=bound.whole)


# Tests on the way


def tests_before(node: ast.AST, around: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, bool]]:
    """The tests passed on the way to a node in its function, nearest first, and how they came out."""
    inner = node
    for outer in around:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(outer, name, None)
            if isinstance(block, list) and stands_in(block, inner):
                yield from _left_before(inner, block)
        if isinstance(outer, (*DEFINITIONS, ast.Module)):
            return
        if isinstance(outer, (ast.If, ast.While)) and inner is not outer.test:
            yield outer.test, stands_in(outer.body, inner)
        elif isinstance(outer, ast.IfExp) and inner is not outer.test:
            yield outer.test, inner is outer.body
        elif isinstance(outer, ast.BoolOp):
            passed = outer.values[: next(i for i, value in enumerate(outer.values) if value is inner)]
            yield from ((operand, isinstance(outer.op, ast.And)) for operand in reversed(passed))
        elif isinstance(outer, COMPREHENSIONS) and not isinstance(inner, ast.comprehension):
            for generator in reversed(outer.generators):
                yield from ((condition, True) for condition in reversed(generator.ifs))
        inner = outer


def ways_out(node: ast.AST, around: Iterable[ast.AST]) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The nodes around a node, each with its part that leads there."""
    inner = node
    for outer in around:
        yield outer, inner
        inner = outer


def excludes(around: ast.AST, one: ast.AST, other: ast.AST) -> bool:
    """True if at most one of two parts of a statement runs, as they are different branches of it."""
    if isinstance(around, ast.If):
        bodies = [(stands_in(around.body, part), stands_in(around.orelse, part)) for part in (one, other)]
        return sorted(bodies) == [(False, True), (True, False)]
    return isinstance(around, ast.Match) and isinstance(one, ast.match_case) and isinstance(other, ast.match_case)


def _left_before(node: ast.AST, block: list[ast.stmt]) -> Iterator[tuple[ast.expr, bool]]:
    """Assertions, and tests whose branch never completes, among the statements before a node."""
    before = block[: next(index for index, statement in enumerate(block) if statement is node)]
    for statement in reversed(before):
        if isinstance(statement, ast.Assert):
            yield statement.test, True
        elif isinstance(statement, ast.If) and not statement.orelse:
            if isinstance(statement.body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)):
                yield statement.test, False
