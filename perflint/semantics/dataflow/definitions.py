"""The assignments that a name may have its value from: reaching definitions, found on demand.

The interpreter keeps values, not their origins. This module looks for the bindings of one name
in one scope, in the order in which statements run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from perflint.frozen import dataclass
from perflint.semantics.binders import COMPREHENSIONS, DEFINITIONS, Binding, How, bound_names, parameters, targets
from perflint.semantics.structure import GROWS, FunctionNode, path_of, stands_in, walk
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
            return _reaching(outer, path, None if is_later else use)
        if isinstance(outer, COMPREHENSIONS):
            if is_home:
                return Definitions((variable.bindings[0],), False) if path == root else Definitions()
        elif isinstance(outer, ast.ClassDef):
            found = Definitions() if is_later else _reaching(outer, path, use)
            if found.bindings:
                return found
            use = outer
            if is_home and scope.outer is not None:
                variable = symbols.resolve(scope.outer, root)
        elif is_home:
            return _reaching(outer, path, use, is_later)
        elif not isinstance(outer, ast.Lambda):
            use, is_later = outer, True
    return Definitions()


def _reaching(scope: Scope, path: str, use: ast.AST | None, is_later: bool = False) -> Definitions:
    """The bindings that reach a node, or the end of a scope; with `is_later`, all of the scope's if none does."""
    flow = _Flow(path, use)
    flow.enter(scope)
    state = flow.state if use is None else flow.found
    if is_later and state is not None and state == {_UNBOUND}:
        state = frozenset(flow.ever)
    if state is None:
        return Definitions(scope=scope)
    bindings = sorted(state - {_UNBOUND}, key=lambda binding: binding.line)
    return Definitions(tuple(bindings), _UNBOUND in state, scope)


_State = frozenset[Binding] | None
_UNBOUND = Binding(How.DECLARED, ast.Pass(), 0)


def _join(left: _State, right: _State) -> _State:
    if left is None or right is None:
        return right if left is None else left
    return left | right


_DEEPEST_REPEATED_LOOP = 6
"""Loops nested deeper run once a pass: twice each would take time without end."""


class _Flow:
    """Runs through a scope and follows one path. `state` is None if code cannot be reached."""

    def __init__(self, path: str, use: ast.AST | None) -> None:
        self.path = path
        self.root = path.partition(".")[0]
        self.use = use
        self.found: _State = None
        self.state: _State = frozenset({_UNBOUND})
        self.breaks: _State = None
        self.continues: _State = None
        self.loops = 0
        self.ever: set[Binding] = set()
        """All bindings, wherever they reach."""
        self.bound: set[Binding] = set()
        """The bindings of the running `try`."""

    def enter(self, scope: Scope) -> None:
        if isinstance(scope, (ast.Module, ast.ClassDef)):
            self.run(scope.body)
            return
        arg = parameters(scope).get(self.path)
        if arg is not None:
            self.state = frozenset({Binding(How.PARAMETER, arg, arg.lineno)})
        if isinstance(scope, ast.Lambda):
            self.read(scope.body)
        else:
            self.run(scope.body)

    def run(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if statement is self.use:
                self.found = _join(self.found, self.state)
            handler = _STATEMENTS.get(type(statement))
            if handler is None:
                self.read(statement)
            else:
                handler(self, statement)

    # Reading and binding

    def read(self, *nodes: ast.AST | None) -> None:
        """Evaluate expressions: the one that is asked for may be among them."""
        for root in nodes:
            for node in () if root is None else walk(root):
                if node is self.use:
                    self.found = _join(self.found, self.state)
                elif isinstance(node, ast.NamedExpr):
                    self.bind(node.target, How.NAMED, node.value)
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    if node.func.attr in GROWS and path_of(node.func.value) == self.path and node.args:
                        self.add(Binding(How.GROWN, node, node.lineno, node.args[-1], False))

    def bind(self, target: ast.expr, how: How, value: ast.expr | None) -> None:
        """Bind a target, or several."""
        for part in targets(target):
            path = path_of(part)
            if path == self.path:
                self.become(Binding(how, part, part.lineno, value, part is target))
            elif path and self.path.startswith(f"{path}."):
                self.become(_UNBOUND)
            elif isinstance(part, ast.Subscript):
                self.read(part)
                if path_of(part.value) == self.path:
                    self.add(Binding(How.GROWN, part, part.lineno, value, False))
            elif not path or part is self.use:
                self.read(part)
            elif isinstance(part, ast.Attribute):
                self.read(part.value)

    def bind_name(self, name: str | None, how: How, node: ast.AST, line: int, value: ast.expr | None = None) -> None:
        if name == self.path:
            self.become(Binding(how, node, line, value, value is None))

    def become(self, binding: Binding) -> None:
        """Bind, where this can be reached."""
        if self.state is not None:
            self.state = frozenset({binding})
            self.ever.add(binding)
            self.bound.add(binding)

    def add(self, binding: Binding) -> None:
        """Add a binding to those that may hold."""
        if self.state is not None:
            self.state = self.state | {binding}
            self.bound.add(binding)

    # Statements

    def _assign(self, node: ast.Assign) -> None:
        self.read(node.value)
        for target in node.targets:
            self.bind(target, How.ASSIGNED, node.value)

    def _ann_assign(self, node: ast.AnnAssign) -> None:
        self.read(node.value)
        self.bind(node.target, How.DECLARED if node.value is None else How.ASSIGNED, node.value)

    def _aug_assign(self, node: ast.AugAssign) -> None:
        self.read(node.target, node.value)
        if path_of(node.target) == self.path:
            before = self.state
            self.bind(node.target, How.AUGMENTED, node.value)
            # The new value depends on the old one.
            self.state = _join(self.state, before)

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self.read(node.iter)
        self._loop(node, lambda: self.bind(node.target, How.LOOP, node.iter))

    def _while(self, node: ast.While) -> None:
        self._loop(node, lambda: self.read(node.test))

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, start: Callable[[], None]) -> None:
        outer = self.breaks, self.continues
        breaks: _State = None
        self.loops += 1
        for _ in range(2 if self.loops <= _DEEPEST_REPEATED_LOOP else 1):
            self.breaks = self.continues = None
            before = self.state
            start()
            self.run(node.body)
            self.state = _join(before, _join(self.state, self.continues))
            breaks = _join(breaks, self.breaks)
            if self.state == before:
                break
        self.loops -= 1
        self.breaks, self.continues = outer
        if isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value:
            # Endless: only a `break` leads to the code after it.
            self.state = None
        self.run(node.orelse)
        self.state = _join(self.state, breaks)

    def _if(self, node: ast.If) -> None:
        self.read(node.test)
        before = self.state
        self.run(node.body)
        after, self.state = self.state, before
        self.run(node.orelse)
        self.state = _join(after, self.state)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.read(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, How.WITH, item.context_expr)
        self.run(node.body)

    def _try(self, node: ast.Try) -> None:
        if not node.finalbody:
            self._handled(node)
            return
        jumps = self.breaks, self.continues
        left = self._left(lambda: self._handled(node))
        done = self.state
        # It also runs on the way out: after an error, a jump or a `return`.
        self.state = before = _join(left, done)
        self.run(node.finalbody)
        if self.state != before and jumps != (self.breaks, self.continues):
            self.breaks, self.continues = _join(self.breaks, self.state), _join(self.continues, self.state)
        if done is None or self.state == before:
            self.state = done

    def _handled(self, node: ast.Try) -> None:
        """Run all of a `try` but its `finally`."""
        failed = self._left(lambda: self.run(node.body))
        self.run(node.orelse)
        done = self.state
        for handler in node.handlers:
            self.state = failed
            self.read(handler.type)
            self.bind_name(handler.name, How.EXCEPT, handler, handler.lineno)
            self.run(handler.body)
            done = _join(done, self.state)
        self.state = done

    def _left(self, run: Callable[[], None]) -> _State:
        """Run statements; the bindings where an error or a jump leaves one of them."""
        before = self.state
        outer, self.bound = self.bound, set()
        run()
        left = _join(before, frozenset(self.bound) or self.state)
        self.bound |= outer
        return left

    def _match(self, node: ast.Match) -> None:
        self.read(node.subject)
        before = self.state
        done = before
        for case in node.cases:
            self.state = before
            for part in walk(case.pattern):
                for name in bound_names(part):
                    self.bind_name(name, How.PATTERN, part, case.pattern.lineno, node.subject)
            self.read(case.guard)
            self.run(case.body)
            done = _join(done, self.state)
        self.state = done

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.read(*node.decorator_list)
        if isinstance(node, ast.ClassDef):
            self.read(*node.bases, *node.keywords)
        else:
            self.read(node.args, node.returns)
        self.bind_name(node.name, How.DEFINITION, node, node.lineno)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for name in bound_names(node):
            self.bind_name(name, How.IMPORT, node, node.lineno)

    def _return(self, node: ast.Return) -> None:
        self.read(node.value)
        self.state = None

    def _raise(self, node: ast.Raise) -> None:
        self.read(node.exc, node.cause)
        self.state = None

    def _break(self, node: ast.Break) -> None:
        self.breaks, self.state = _join(self.breaks, self.state), None

    def _continue(self, node: ast.Continue) -> None:
        self.continues, self.state = _join(self.continues, self.state), None

    def _delete(self, node: ast.Delete) -> None:
        self.read(*node.targets)
        if any(path_of(target) == self.path for target in node.targets):
            self.become(_UNBOUND)


_STATEMENTS: dict[type[ast.stmt], Callable[[_Flow, Any], None]] = {
    ast.Assign: _Flow._assign,
    ast.AnnAssign: _Flow._ann_assign,
    ast.AugAssign: _Flow._aug_assign,
    ast.For: _Flow._for,
    ast.AsyncFor: _Flow._for,
    ast.While: _Flow._while,
    ast.If: _Flow._if,
    ast.With: _Flow._with,
    ast.AsyncWith: _Flow._with,
    ast.Try: _Flow._try,
    ast.TryStar: _Flow._try,
    ast.Match: _Flow._match,
    ast.FunctionDef: _Flow._definition,
    ast.AsyncFunctionDef: _Flow._definition,
    ast.ClassDef: _Flow._definition,
    ast.Import: _Flow._import,
    ast.ImportFrom: _Flow._import,
    ast.Return: _Flow._return,
    ast.Raise: _Flow._raise,
    ast.Break: _Flow._break,
    ast.Continue: _Flow._continue,
    ast.Delete: _Flow._delete,
}


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
