"""How often a line runs: the loops, guards and functions around it, and who calls these."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from perflint.findings import Heat
from perflint.semantics.facts import conventions
from perflint.semantics.heat.call_graph import CallGraph
from perflint.semantics.heat.emptiness import finds_nothing, is_for_nothing
from perflint.semantics.heat.guards import (
    asks_state,
    fails,
    fills_cache,
    leaves,
    mends_place,
    rarely,
    returns_kept,
    warns,
)
from perflint.semantics.heat.once import runs_once
from perflint.semantics.heat.steps import NO_WORK, Named, WorkMap, by_name, checks, keeps_results
from perflint.semantics.heat.switches import is_switched_off
from perflint.semantics.heat.test_code import TestCode
from perflint.semantics.heat.turns import (
    Counts,
    Loop,
    asks_for_first,
    counts_epochs,
    counts_of,
    loop_that_raises,
    ranges_few,
    turns_few,
    turns_once,
)
from perflint.semantics.structure import block_in, children, last_name, names_in, place_in, walk
from perflint.semantics.values import Function, Instance, Mapping, Tensor

if TYPE_CHECKING:
    from perflint.semantics.model import Model
    from perflint.semantics.structure import FunctionInfo, FunctionNode

_ANYTHING = ast.Name("", ast.Load())
"""The target of a loop, an import or a part of an assignment."""
_LONGEST_CHAIN = 40
"""Functions that call each other in a row, and are followed to the first."""


class HeatMap:
    """The heat of every node of one file."""

    def __init__(self, model: Model, knows_other_files: bool = True) -> None:
        # The model owns its heat: no circle, so that both go when the file is done.
        self._model: Model = weakref.proxy(model)
        self._knows_other_files = knows_other_files
        self._few: dict[ast.AST, bool] = {}
        self._counts: dict[ast.AST, Counts] = {}
        self._known: dict[ast.AST, Heat] = {}
        self._functions: dict[FunctionInfo, Heat] = {}
        self._running: set[FunctionInfo] = set()
        self._calls = CallGraph(model)
        self._guards: dict[ast.AST, ast.expr] | None = None
        self._fills: dict[ast.If, bool] = {}
        self._rare: dict[tuple[ast.If | ast.IfExp, bool], bool] = {}
        """True if the branches of a test rarely run."""
        self._flags: dict[str, list[ast.Name]] | None = None
        self._open: set[FunctionInfo] = set()
        """Functions that others were asked about while their own heat was being found."""
        self._unsure: list[ast.AST] = []
        self._unsure_functions: list[FunctionInfo] = []
        """Answers that were given meanwhile, without the heat of those functions."""
        self.work = WorkMap(model)
        self.tests = TestCode(model, self._calls, self.work)
        self._in_tests: set[ast.AST] = set()
        """Nodes in test code, as far as they have been asked for."""
        self._is_of_tests = self.tests.are_all

    def of(self, node: ast.AST) -> Heat:
        """How often a node runs."""
        if self._is_of_tests:
            return Heat.COLD
        chain: list[ast.AST] = []
        current: ast.AST | None = node
        while current is not None and current not in self._known:
            chain.append(current)
            current = self._model.parent(current)
        for inner in reversed(chain):
            self._known[inner] = self._step(inner)
        if self._open:
            self._unsure += chain
        return self._known[node]

    def _step(self, node: ast.AST) -> Heat:
        """The heat of a node from that of the node around it."""
        parent = self._model.parent(node)
        if parent is None:
            return Heat.COLD
        if parent in self._in_tests or self.tests.holds(node):
            self._in_tests.add(node)
            return Heat.COLD
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return self._known[parent]
        if isinstance(node, (ast.ExceptHandler, ast.Raise)) or self.guard(parent, node) is not None:
            return Heat.COLD
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self._function(parent) if isinstance(node, ast.stmt) else self._known[parent]
        around = self._known[parent]
        if isinstance(parent, ast.Lambda) and around is not Heat.HOT and self._calls.bound_name(parent):
            return self._function(parent)
        if isinstance(parent, (ast.For, ast.AsyncFor)) and _is_in_body(parent, node):
            return self._loop(parent, around)
        if isinstance(parent, ast.While):
            return self._loop(parent, around) if node is parent.test or _is_in_body(parent, node) else around
        if isinstance(parent, ast.Call) and around is Heat.WARM and node is not parent.func:
            # A step may register a buffer again, but other code does so once.
            if conventions.registers(last_name(parent)):
                return Heat.COLD
        if isinstance(parent, ast.Assert) and node is parent.msg:
            return Heat.COLD
        if isinstance(parent, ast.Call) and node is not parent.func and warns(parent) and self._is_of_branch(parent):
            return Heat.COLD
        return around

    # Guards

    def guard(self, parent: ast.AST, node: ast.AST) -> ast.expr | None:
        """The test that lets a node run only now and then, if one does."""
        test: ast.expr | None = None
        if isinstance(parent, (ast.If, ast.IfExp)) and node is not parent.test:
            is_body = _is_in_body(parent, node) if isinstance(parent, ast.If) else node is parent.body
            if isinstance(parent, ast.If) and not isinstance(node, ast.Raise):
                fills = is_body and self._fills_cache(parent)
                is_trivial = is_body and leaves(parent.body) and finds_nothing(parent.test, True)
                if fills or is_trivial or fails(parent.body if is_body else parent.orelse):
                    return parent.test
                if is_for_nothing(parent.test, is_body, self._bound_flags):
                    return parent.test
            if self._is_rare(parent, is_body):
                test = parent.test
            elif isinstance(parent, ast.IfExp) and finds_nothing(parent.test, is_body):
                return parent.test
        if test is None and isinstance(node, (ast.stmt, ast.expr)):
            test = self._earlier_guards().get(node)
        return None if test is None or self._selects_within_step(test) else test

    def _is_rare(self, parent: ast.If | ast.IfExp, is_body: bool) -> bool:
        """True if a branch rarely runs, by its test; one that steps an optimizer accumulates gradients."""
        known = self._rare.get((parent, is_body))
        if known is None:
            branch = parent.body if is_body else parent.orelse
            parts: Sequence[ast.AST] = branch if isinstance(branch, list) else [branch]
            known = mends_place(parent.test, is_body, parts, self._model.value)
            if not known and self._rarely(parent.test, is_body):
                known = not isinstance(branch, list) or not self.work.of(branch).steps
            self._rare[parent, is_body] = known
        return known

    def _fills_cache(self, branch: ast.If) -> bool:
        known = self._fills.get(branch)
        if known is None:
            known = self._fills[branch] = fills_cache(branch, self._before)
        return known

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
        return self._is_first_turn(test, outcome) or rarely(test, outcome, self._model.value)

    def _is_first_turn(self, test: ast.expr, outcome: bool) -> bool:
        """True if a test that comes out as `outcome` says that a loop around it is in its first turn: `if i == 0:`."""
        name = asks_for_first(test, outcome)
        loops = [(loop, self._counts_of(loop)) for loop in self._loops_around(test)] if name else []
        if any(counts.turns == name for _, counts in loops):
            return True
        counting = loop_that_raises(name, loops)
        return counting is not None and self.of(counting) is not Heat.HOT

    def _returned(self, test: ast.expr) -> list[ast.expr]:
        """The results of a function of the file that a test calls: `self.is_due(step)`."""
        callee = self._model.value(test.func) if isinstance(test, ast.Call) else None
        if not isinstance(callee, Function) or callee.module != self._model.module.name:
            return []
        info = self._model.module.function(callee.line, callee.column)
        if info is None or isinstance(info.node, ast.Lambda):
            return [] if info is None or not isinstance(info.node, ast.Lambda) else [info.node.body]
        returns = [node for node in walk(info.node) if isinstance(node, ast.Return)]
        return [node.value or _ANYTHING for node in returns if self._model.function(node) is info.node]

    def _bound_flags(self, use: ast.Name) -> list[ast.expr]:
        """The value of a flag in its function: `is_eval_step = step % 100 == 0`."""
        if self._flags is None:
            self._flags = {}
            for node in self._model.nodes(ast.Name):
                if isinstance(node.ctx, ast.Store):
                    self._flags.setdefault(node.id, []).append(node)
        function = self._model.function(use)
        stores = [node for node in self._flags.get(use.id, ()) if self._model.function(node) is function]
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
            rest = rest | self.work.inside(block[index])
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
                    return self.of(outer) is Heat.HOT
        return False

    def _is_of_branch(self, call: ast.Call) -> bool:
        """True if a call is a statement of a branch, and not of a function or loop."""
        statement = self._model.parent(call)
        return isinstance(statement, ast.Expr) and isinstance(self._model.parent(statement), ast.If)

    # Loops

    def _turns_few(self, loop: ast.For | ast.AsyncFor | ast.While) -> bool:
        # It looks at the whole body, and each statement in it asks.
        known = self._few.get(loop)
        if known is None:
            known = self._few[loop] = turns_few(loop)
        return known

    def _counts_of(self, loop: Loop) -> Counts:
        known = self._counts.get(loop)
        if known is None:
            known = self._counts[loop] = counts_of(loop)
        return known

    def _loop(self, loop: ast.For | ast.AsyncFor | ast.While, around: Heat) -> Heat:
        if around is Heat.HOT:
            return Heat.HOT
        if turns_once(loop):
            return around
        work = self.work.of(loop.body)
        if isinstance(loop, ast.While):
            work = work | self.work.inside(loop.test)
        if not work.steps and (self._turns_few(loop) or (around is Heat.COLD and ranges_few(loop))):
            return Heat.COLD
        if isinstance(loop, (ast.For, ast.AsyncFor)) and self.work.is_over_batches(loop.iter):
            return Heat.HOT
        if not work.runs and not work.steps and self._goes_over_state(loop):
            return around
        trains = self._holds_training(loop) and not _goes_backward(loop) if work.steps else work.calls_loop
        epochs = trains and counts_epochs(loop)
        if work.is_turn and not epochs and (work.steps or not checks(self._model, loop)):
            return Heat.HOT
        if work.loops or work.calls_loop:
            # A loop over epochs: the code beside the inner loop runs once an epoch. If another
            # such loop is around it, it runs many times.
            return Heat.WARM if around is Heat.COLD and any(self._loops_around(loop)) else around
        return around

    def _holds_training(self, loop: ast.For | ast.AsyncFor | ast.While) -> bool:
        """True if a loop holds one that trains by itself: a step after it is for the last gradients of an epoch."""
        inner = (each for each in loop.body if isinstance(each, (ast.For, ast.AsyncFor, ast.While)))
        works = (self.work.of(each.body) for each in inner)
        return any(work.steps and (work.runs or work.calls_run) for work in works)

    def _goes_over_state(self, loop: ast.For | ast.AsyncFor | ast.While) -> bool:
        """True if a loop goes over tensors by name, as those of a checkpoint: `for name, tensor in tensors.items()`."""
        if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or last_name(loop.iter) != "items":
            return False
        holder = self._model.value(loop.iter.func.value) if isinstance(loop.iter.func, ast.Attribute) else None
        return isinstance(holder, Mapping) and any(isinstance(each, Tensor) for each in holder.element.members)

    def _loops_around(self, node: ast.AST) -> Iterator[Loop]:
        """The loops of a node's function that it is in, inner ones first."""
        for outer in self._model.ancestors(node):
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return
            if isinstance(outer, (ast.For, ast.AsyncFor, ast.While)):
                yield outer

    # Functions

    def _function(self, node: FunctionNode) -> Heat:
        info = self._model.module.function(node.lineno, node.col_offset)
        if info is None:
            return Heat.WARM
        known = self._functions.get(info)
        if known is None:
            if info in self._running or len(self._running) >= _LONGEST_CHAIN:
                self._open |= {info} & self._running
                return Heat.WARM
            self._running.add(info)
            known = self._functions[info] = self._function_heat(info)
            self._running.discard(info)
            self._settle(info)
        return known

    def _settle(self, info: FunctionInfo) -> None:
        """Forget answers that lacked a function's heat, which is now known: the order of questions must not matter."""
        self._open.discard(info)
        if self._open:
            self._unsure_functions.append(info)
            return
        for place in self._unsure:
            self._known.pop(place, None)
        for function in self._unsure_functions:
            self._functions.pop(function, None)
        self._unsure.clear()
        self._unsure_functions.clear()

    def _function_heat(self, info: FunctionInfo) -> Heat:
        declared = self._declared(info)
        if declared is not None:
            return declared
        named = self.named(info)
        known = None if named is None else named.heat
        if known is Heat.HOT or self._is_step(info):
            return Heat.HOT
        if keeps_results(info):
            return Heat.COLD
        callers = self.callers(info)
        if known is Heat.COLD and by_name(self._model, info) is not None and not conventions.runs_rarely(info.name):
            callers = [] if _returns_early(info.node) else [call for call in callers if self._is_sure(call, info)]
        heats = {self.of(call) for call in callers}
        if Heat.HOT in heats:
            return Heat.HOT
        if Heat.WARM in heats and Heat.COLD in heats:
            # One that calls itself runs as often as others call it.
            heats = {self.of(call) for call in callers if info.node not in self._model.ancestors(call)}
        stays_cold = heats == {Heat.COLD} and self._is_only_for(callers, info)
        if known is Heat.COLD or stays_cold or self.work.is_whole_training(info):
            is_hot = self._is_made_each_step(info) or self._is_summed_up_each_step(info)
            return Heat.HOT if is_hot else Heat.COLD
        chain = self._model.chain(info) if self._knows_other_files else None
        if chain is None or (chain.heat is Heat.COLD and Heat.WARM in heats):
            return Heat.WARM
        return chain.heat

    def _is_made_each_step(self, info: FunctionInfo) -> bool:
        """True if code of another file that runs each step makes an object itself, unless the object is a module."""
        if info.name != "__init__" or self._model.is_module(Instance(f"{self._model.module.name}.{info.owner}")):
            return False
        chain = self._model.chain(info) if self._knows_other_files else None
        return chain is not None and chain.heat is Heat.HOT and len(chain.calls) == 1

    def _is_summed_up_each_step(self, info: FunctionInfo) -> bool:
        """True if code of another file that runs each step leads to the method of a metric that sums it up."""
        chain = self._model.chain(info) if self._knows_other_files and conventions.sums_up(info.name) else None
        return chain is not None and chain.heat is Heat.HOT

    def named(self, info: FunctionInfo) -> Named | None:
        """How often a function runs by the settings, its name or its work, or None if none of them tells."""
        declared = self._declared(info)
        if declared is not None:
            return Named(declared, f"the settings list under `{declared.value}-functions`")
        return by_name(self._model, info) or runs_once(self._model, info)

    def _declared(self, info: FunctionInfo) -> Heat | None:
        """How often a function runs by the settings."""
        return self._model.view.project.declared.heat(self._model.module.name, info.qualname)

    def _is_only_for(self, callers: list[ast.Call], info: FunctionInfo) -> bool:
        """True if a function has no other callers than these in any file: it is private, or helps constructors."""
        if info.name.startswith("_") or info.outer is not None:
            return True
        return not conventions.may_run_again(info.name) and all(map(self._constructs, callers))

    def _constructs(self, call: ast.Call) -> bool:
        function = self._model.function(call)
        info = None if function is None else self._model.module.function(function.lineno, function.col_offset)
        return info is not None and info.constructs

    def _is_step(self, info: FunctionInfo) -> bool:
        """True if a method is the `step` of an optimizer, or one that runs a model itself, or takes one step of a game.

        `action = self.model(state)` and one `self.env.step(action)`, in no loop: the loop is around the calls.
        """
        if not info.owner or isinstance(info.node, ast.Lambda):
            return False
        if info.name != "step":
            return self._steps_environment(info.node) and self.work.of(info.node.body).any
        lineage = self._model.lineage(f"{self._model.module.name}.{info.owner}")
        return any(cls.endswith("Optimizer") for cls in lineage) or self.work.of(info.node.body).any

    def _steps_environment(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        for call in walk(function):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "step":
                if conventions.is_environment(last_name(call.func.value)) and self._is_outside_loops(call, function):
                    return True
        return False

    def _is_outside_loops(self, node: ast.AST, function: ast.AST) -> bool:
        for outer in self._model.ancestors(node):
            if isinstance(outer, (ast.For, ast.AsyncFor, ast.While, ast.Lambda, ast.comprehension)):
                return False
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return outer is function
        return False

    def _is_sure(self, call: ast.Call, info: FunctionInfo) -> bool:
        """True if a call is of a function for set-up, and not only until it has been set up."""
        if last_name(call) not in (info.name, info.owner.rpartition(".")[2]) or not self._model.target(call):
            return False
        inner: ast.AST = call
        for outer in self._model.ancestors(call):
            if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test and asks_state(outer.test):
                # The mask of a step that `if self.is_causal:` makes and does not keep is made in each step.
                if info.name != "__init__" or _keeps(outer):
                    return False
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return not _returns_early(outer)
            inner = outer
        return True

    def callers(self, info: FunctionInfo) -> list[ast.Call]:
        """The calls in this file that call a function, or may, and the hot ones that are given it to call."""
        # A hook or a factory is given away once and called often, so a cold place does not make it cold.
        given = [call for call in self._calls.given(info) if self.of(call) is Heat.HOT]
        return self._calls.calls(info) + given


def _goes_backward(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """True if a loop calls `backward` beside its inner loops."""
    waiting: list[ast.AST] = [*loop.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and last_name(node) == "backward":
            return True
        if not isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting += children(node)
    return False


def _is_in_body(parent: ast.For | ast.AsyncFor | ast.While | ast.If, node: ast.AST) -> bool:
    """True if a part of a compound statement is in its first block, by its position, since blocks may be long."""
    if not isinstance(node, ast.stmt) or not parent.orelse:
        return isinstance(node, ast.stmt)
    start = parent.orelse[0]
    return (node.lineno, node.col_offset) < (start.lineno, start.col_offset)


def _keeps(branch: ast.If | ast.IfExp) -> bool:
    """True if a branch stores anything in an attribute or an element, or is part of an expression."""
    if isinstance(branch, ast.IfExp):
        return True
    stores = (ast.Attribute, ast.Subscript)
    return any(isinstance(node, stores) and isinstance(node.ctx, ast.Store) for node in walk(branch))


def _returns_early(node: FunctionNode) -> bool:
    """True if a function returns early if its result exists already: `if self.table is not None: return`."""
    body = [] if isinstance(node, ast.Lambda) else node.body
    return any(isinstance(inner, ast.If) and leaves(inner.body) and asks_state(inner.test) for inner in body)
