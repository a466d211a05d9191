"""Branches that rarely run: the test that guards a statement or an operand."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from perflint.findings import Heat
from perflint.semantics.binders import own_nodes
from perflint.semantics.callers.fields import default_of_field
from perflint.semantics.heat.data_tests import is_for_other_kind, is_for_other_place, tells_of_tensor
from perflint.semantics.heat.emptiness import finds_nothing, is_for_nothing, is_for_single
from perflint.semantics.heat.gaps import fills_gaps
from perflint.semantics.heat.guards import fails, fills_cache, is_long, leaves, mends_place, rarely, returns_kept
from perflint.semantics.heat.renewal import renews
from perflint.semantics.heat.steps import WorkMap
from perflint.semantics.heat.switches import is_switched_off
from perflint.semantics.heat.turns import (
    Counts,
    Loop,
    asks_for_first,
    asks_for_last,
    counts_of,
    leaves_loop,
    length_awaited,
    loop_that_raises,
)
from perflint.semantics.heat.work import NO_WORK
from perflint.semantics.memo import remembered
from perflint.semantics.structure import block_in, names_in, place_in, walk
from perflint.semantics.values import Const, Function, Scalar, Value

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred

_ANYTHING = ast.Name("", ast.Load())
"""The target of a loop, an import or a part of an assignment."""


class _Heats(Protocol):
    def of(self, node: ast.AST) -> Heat:
        """How often a node runs."""


class Branches:
    """The branches of one file."""

    def __init__(self, heat: _Heats, model: Inferred, work: WorkMap) -> None:
        # The heat map owns its branches: no circle, so that both go when the file is done.
        self._heat: _Heats = weakref.proxy(heat)
        self._model: Inferred = weakref.proxy(model)
        self._work = work
        self._guards: dict[ast.AST, ast.expr] | None = None

    def guard(self, parent: ast.AST, node: ast.AST) -> ast.expr | None:
        """The test that lets a node run only now and then, if one does."""
        test: ast.expr | None = None
        if isinstance(parent, (ast.If, ast.IfExp)) and node is not parent.test:
            is_body = is_in_body(parent, node) if isinstance(parent, ast.If) else node is parent.body
            if isinstance(parent, ast.If) and not isinstance(node, ast.Raise):
                fills = is_body and self._fills_cache(parent)
                is_trivial = is_body and leaves(parent.body) and finds_nothing(parent.test, True, self._bound_flags)
                if fills or is_trivial or fails(parent.body if is_body else parent.orelse):
                    return parent.test
                if is_for_nothing(parent.test, is_body, self._bound_flags):
                    return parent.test
            if is_for_single(parent.test, is_body, self._model.value):
                return parent.test
            if self._is_rare(parent, is_body):
                test = parent.test
            elif isinstance(parent, ast.IfExp) and finds_nothing(parent.test, is_body, self._bound_flags):
                return parent.test
        if test is None and isinstance(node, (ast.stmt, ast.expr)):
            test = self._earlier_guards().get(node)
        return None if test is None or self._selects_within_step(test) else test

    def loop_left(self, node: ast.AST) -> Loop | None:
        """The loop that the branch of a statement leaves as it ends: `if is_done: report(loss.item()); break`."""
        branch = self._model.parent(node)
        block = block_in(branch, node) if isinstance(branch, ast.If) else []
        last = block[-1] if block else None
        return self._loop_ended(last) if isinstance(last, (ast.Break, ast.Return)) else None

    @remembered
    def _loop_ended(self, last: ast.Break | ast.Return) -> Loop | None:
        """The loop that a block leaves by its last statement."""
        is_left = leaves_loop(block_in(self._model.parent(last), last))
        loops = list(loops_around(self._model, last)) if is_left else []
        return (loops[0] if isinstance(last, ast.Break) else loops[-1]) if loops else None

    @remembered
    def _is_rare(self, parent: ast.If | ast.IfExp, is_body: bool) -> bool:
        """True if a branch rarely runs, by its test; one that steps an optimizer accumulates gradients."""
        branch = parent.body if is_body else parent.orelse
        parts: Sequence[ast.AST] = branch if isinstance(branch, list) else [branch]
        if (
            mends_place(parent.test, is_body, parts, self._model.value)
            or is_for_other_kind(self._model, parent.test, is_body)
            or is_for_other_place(self._model, parent.test, is_body)
            or (is_body and tells_of_tensor(self._model, parent))
            or (is_body and isinstance(parent, ast.If) and self._awaits_length(parent))
            or (isinstance(parent, ast.If) and renews(self._model, parent.test, is_body, parts))
        ):
            return True
        if not self._rarely(parent.test, is_body) or fills_gaps(self._model, parent.test, parts):
            return False
        return not isinstance(branch, list) or not self._work.of(branch).steps

    def _awaits_length(self, branch: ast.If) -> bool:
        """True if a branch runs once for many turns, whose results it takes from a list, and runs no model itself."""
        loop = next(loops_around(self._model, branch), None)
        length = None if loop is None else length_awaited(branch, loop)
        return length is not None and is_long(length, self._model.value) and not self._work.of(branch.body).any

    @remembered
    def _fills_cache(self, branch: ast.If) -> bool:
        return fills_cache(branch, self._before)

    def _rarely(self, test: ast.expr, outcome: bool) -> bool:
        """True if a test, or the flag that it asks, comes out as `outcome` only now and then."""
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, outcome = test.operand, not outcome
        if outcome and isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            return any(self._rarely(each, True) for each in test.values)
        bound = self._bound_flags(test) if isinstance(test, ast.Name) else self._returned(test)
        if bound and all(self._rarely_is(value, outcome) for value in bound):
            return True
        return self._rarely_is(test, outcome) or is_switched_off(self._model, test, outcome)

    def _rarely_is(self, test: ast.expr, outcome: bool) -> bool:
        if self._is_first_or_last_turn(test, outcome) or rarely(test, outcome, self._value):
            return True
        compared = self._with_value(test)
        return compared is not None and rarely(compared, outcome, self._value)

    def _value(self, node: ast.expr) -> Value:
        """The value of an expression. A number of steps that is a field of settings has its default."""
        value = self._model.value(node)
        if not isinstance(node, ast.Attribute) or isinstance(value, Scalar):
            return value
        parent = self._model.parent(node)
        if not isinstance(parent, ast.BinOp) or not isinstance(parent.op, ast.Mod):
            return value
        default = default_of_field(self._model, node.attr)
        return value if default is None else Scalar(type(default.value).__name__, Const(default.value))

    def _with_value(self, test: ast.expr) -> ast.Compare | None:
        """A comparison with the value of the name that it asks: of `rest == 0` after `rest = step % 100`."""
        if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name):
            return None
        if self._model.parent(test) is None:
            # The test is of another file.
            return None
        if len(self._model.symbols.variable(test.left).bindings) != 1:
            return None
        bound = self._bound_flags(test.left)
        if len(bound) != 1 or isinstance(bound[0], ast.Constant):
            # A constant may be bound behind the test.
            return None
        return ast.Compare(bound[0], test.ops, test.comparators)

    def _is_first_or_last_turn(self, test: ast.expr, outcome: bool) -> bool:
        """True if a test that comes out as `outcome` says that the iteration is the first or the last: `if i == 0:`."""
        name = asks_for_first(test, outcome)
        loops = [(loop, self._counts_of(loop)) for loop in loops_around(self._model, test)] if name else []
        if any(counts.turns == name for _, counts in loops):
            return True
        around = loops_around(self._model, test) if isinstance(test, ast.Compare) else ()
        if any(asks_for_last(test, outcome, loop, self._over(loop)) for loop in around):
            return True
        counting = loop_that_raises(name, loops)
        return counting is not None and self._heat.of(counting) is not Heat.HOT

    def _over(self, loop: Loop) -> list[ast.expr]:
        """The iterable of a loop, and the values of the names in it: `tqdm(loader)` for `bar`."""
        if isinstance(loop, ast.While):
            return []
        names = (node for node in walk(loop.iter) if isinstance(node, ast.Name))
        return [loop.iter, *(value for name in names for value in self._bound_flags(name) if value is not _ANYTHING)]

    def _returned(self, test: ast.expr) -> list[ast.expr]:
        """The results of a function of the project that a test calls: `self.is_due(step)`."""
        callee = self._model.value(test.func) if isinstance(test, ast.Call) else None
        module = self._model.view.loaded(callee.module) if isinstance(callee, Function) else None
        if not isinstance(callee, Function) or module is None:
            return []
        info = module.function(callee.line, callee.column)
        if info is None or isinstance(info.node, ast.Lambda):
            return [] if info is None or not isinstance(info.node, ast.Lambda) else [info.node.body]
        return [node.value or _ANYTHING for node in own_nodes(info.node) if isinstance(node, ast.Return)]

    def _bound_flags(self, use: ast.Name) -> list[ast.expr]:
        """The value of a flag in its function: `is_eval_step = step % 100 == 0`."""
        function = self._model.function(use)
        uses = self._model.names(function or self._model.module.tree, use.id)
        stores = [node for node in uses if isinstance(node.ctx, ast.Store) and self._model.function(node) is function]
        parents = [(self._model.parent(node), node) for node in stores]
        return [
            parent.value if isinstance(parent, ast.Assign) and node in parent.targets else _ANYTHING
            for parent, node in parents
        ]

    def _before(self, branch: ast.If) -> list[ast.stmt]:
        """The statement before one in its block, if there is one."""
        block = block_in(self._model.parent(branch), branch)
        end = place_in(block, branch) or 0
        return block[max(0, end - 1) : end]

    def _earlier_guards(self) -> dict[ast.AST, ast.expr]:
        """Statements after an `if not should_log: return` and operands after `should_log and`, with the test."""
        if self._guards is None:
            self._guards = {}
            branches = [node for node in self._model.nodes(ast.If) if leaves(node.body)]
            tests = [node for node in branches if self._rarely(node.test, False)]
            leaving: set[ast.stmt] = set(tests)
            for parent in dict.fromkeys(self._model.parent(branch) for branch in branches):
                for name in ("body", "orelse", "finalbody"):
                    block = getattr(parent, name, ())
                    if isinstance(block, list) and block:
                        leaving.update(kept for kept in block if isinstance(kept, ast.If) and returns_kept(kept, block))
                        if not leaving.isdisjoint(block):
                            self._guard_rest(block, leaving)
            for operation in self._model.nodes(ast.BoolOp):
                for index, value in enumerate(operation.values):
                    if self._rarely(value, isinstance(operation.op, ast.And)):
                        self._guards.update(dict.fromkeys(operation.values[index + 1 :], value))
                        break
        return self._guards

    def _guard_rest(self, block: list[ast.stmt], leaving: set[ast.stmt]) -> None:
        """Guard the code after the first branch of a block that mostly leaves it, unless it steps an optimizer."""
        assert self._guards is not None
        rest, steps_after = NO_WORK, [False] * len(block)
        for index in reversed(range(len(block))):
            steps_after[index] = rest.steps
            rest = rest | self._work.inside(block[index])
        test: ast.expr | None = None
        for statement, steps in zip(block, steps_after, strict=True):
            if test is not None:
                self._guards[statement] = test
            elif statement in leaving and not steps:
                assert isinstance(statement, ast.If)
                test = statement.test

    def _selects_within_step(self, test: ast.expr) -> bool:
        """True if a test is of the variable of a loop that runs in each step itself: some layers of all."""
        parts = test.values if isinstance(test, ast.BoolOp) else [test]
        telling = [part for part in parts if self._rarely(part, True) or self._rarely(part, False)]
        names = {name for part in telling or [test] for name in names_in(part)}
        for outer in self._model.ancestors(test):
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return False
            if isinstance(outer, (ast.For, ast.AsyncFor)):
                if names & names_in(outer.target):
                    return self._heat.of(outer) is Heat.HOT
        return False

    @remembered
    def _counts_of(self, loop: Loop) -> Counts:
        return counts_of(loop)


def loops_around(model: Inferred, node: ast.AST) -> Iterator[Loop]:
    """The loops of a node's function that it is in, inner ones first."""
    for outer in model.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return
        if isinstance(outer, (ast.For, ast.AsyncFor, ast.While)):
            yield outer


def is_in_body(parent: ast.For | ast.AsyncFor | ast.While | ast.If, node: ast.AST) -> bool:
    """True if a part of a compound statement is in its first block, by its position, since blocks may be long."""
    if not isinstance(node, ast.stmt) or not parent.orelse:
        return isinstance(node, ast.stmt)
    start = parent.orelse[0]
    return (node.lineno, node.col_offset) < (start.lineno, start.col_offset)
