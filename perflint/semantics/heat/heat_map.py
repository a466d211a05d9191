"""How often a line runs: the loops, guards and functions around it, and who calls these."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from perflint.findings import Heat
from perflint.semantics.binders import own_nodes
from perflint.semantics.dataflow.definitions import ways_out
from perflint.semantics.facts import conventions
from perflint.semantics.heat.branches import Branches, is_in_body, loops_around
from perflint.semantics.heat.call_graph import CallGraph
from perflint.semantics.heat.generators import consumer, runs_by_result
from perflint.semantics.heat.guards import asks_state, leaves, warns
from perflint.semantics.heat.once import copies_for_checkpoint, runs_once
from perflint.semantics.heat.steps import Named, WorkMap, by_name, checks, keeps_results, steps_environment
from perflint.semantics.heat.test_code import TestCode
from perflint.semantics.heat.turns import counts_epochs, ranges_few, turns_few, turns_once
from perflint.semantics.memo import remembered
from perflint.semantics.questions import WHOLE, Questions
from perflint.semantics.structure import FUNCTIONS, last_name, walk
from perflint.semantics.values import Instance, Mapping, Tensor

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred
    from perflint.semantics.structure import FunctionInfo, FunctionNode

_LONGEST_CHAIN = 40
"""Functions that call each other in a row, and are followed to the first."""
_OF_EACH_TOKEN = (".StoppingCriteria", ".LogitsProcessor", ".LogitsWarper")
"""Classes of transformers whose objects `generate` calls in each step."""


class HeatMap:
    """The heat of every node of one file."""

    def __init__(self, model: Inferred) -> None:
        # The model owns its heat: no circle, so that both go when the file is done.
        self._model: Inferred = weakref.proxy(model)
        self._known: dict[ast.AST, Heat] = {}
        self._functions: dict[FunctionInfo, Heat] = {}
        self._named: dict[FunctionInfo, Named | None] = {}
        self._questions = Questions()
        self._calls = CallGraph(model)
        self.work = WorkMap(model)
        self._branches = Branches(self, model, self.work)
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
        heat = Heat.COLD if current is None else self._known[current]
        questions = self._questions
        rested_on, questions.provisional = questions.provisional, WHOLE
        heats: dict[ast.AST, Heat] = {}
        for inner in reversed(chain):
            left = self._branches.loop_left(inner) if heat is not Heat.COLD else None
            if left is not None:
                heat = heats[left] if left in heats else self._known[left]
            heat = heats[inner] = self._step(inner, heat)
        if questions.provisional == WHOLE:
            self._known.update(heats)
        questions.provisional = min(rested_on, questions.provisional)
        return heat

    def _step(self, node: ast.AST, around: Heat) -> Heat:
        """The heat of a node from that of the node around it."""
        parent = self._model.parent(node)
        if parent is None:
            return Heat.COLD
        if parent in self._in_tests or self.tests.holds(node):
            self._in_tests.add(node)
            return Heat.COLD
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            # A definition in a function, with its decorators, is a statement of that function.
            return self._function(parent) if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) else around
        if isinstance(node, (ast.ExceptHandler, ast.Raise)) or self.guard(parent, node) is not None:
            return Heat.COLD
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self._statement(parent, node) if isinstance(node, ast.stmt) else around
        if copies_for_checkpoint(self._model, node):
            return Heat.COLD
        if isinstance(parent, ast.Lambda) and around is not Heat.HOT and self._calls.bound_name(parent):
            return self._function(parent)
        if isinstance(parent, (ast.For, ast.AsyncFor)) and is_in_body(parent, node):
            return self._loop(parent, around)
        if isinstance(parent, ast.While):
            return self._loop(parent, around) if node is parent.test or is_in_body(parent, node) else around
        if isinstance(parent, ast.Call) and around is Heat.WARM and node is not parent.func:
            # A step may register a buffer again, but other code does so once.
            if conventions.registers(last_name(parent)):
                return Heat.COLD
        if isinstance(parent, ast.Assert) and node is parent.msg:
            return Heat.COLD
        if isinstance(parent, ast.Call) and node is not parent.func and warns(parent) and self._is_of_branch(parent):
            return Heat.COLD
        return around

    def guard(self, parent: ast.AST, node: ast.AST) -> ast.expr | None:
        """The test that lets a node run only now and then, if one does."""
        return self._branches.guard(parent, node)

    def _is_of_branch(self, call: ast.Call) -> bool:
        """True if a call is a statement of a branch, and not of a function or loop."""
        statement = self._model.parent(call)
        return isinstance(statement, ast.Expr) and isinstance(self._model.parent(statement), ast.If)

    # Loops

    # It looks at the whole body, and each statement in it asks.
    @remembered
    def _turns_few(self, loop: ast.For | ast.AsyncFor | ast.While) -> bool:
        return turns_few(loop)

    def _loop(self, loop: ast.For | ast.AsyncFor | ast.While, around: Heat) -> Heat:
        if around is Heat.HOT:
            return Heat.HOT
        if turns_once(loop):
            return around
        work = self.work.of(loop.body)
        if isinstance(loop, ast.While):
            work = work | self.work.inside(loop.test)
        if self._turns_few(loop) or (not work.steps and around is Heat.COLD and ranges_few(loop)):
            return Heat.COLD
        if isinstance(loop, (ast.For, ast.AsyncFor)) and self.work.is_over_batches(loop.iter):
            return Heat.HOT
        if not work.runs and not work.steps and self._goes_over_state(loop):
            return around
        trains = self._holds_training(loop) and not work.backward if work.steps else work.calls_loop
        epochs = trains and counts_epochs(loop)
        if work.is_turn and not epochs and (work.steps or not checks(self._model, loop)):
            return Heat.HOT
        if self.work.acts(loop) is not None:
            return Heat.HOT
        if work.loops or work.calls_loop:
            # A loop over epochs: the code beside the inner loop runs once an epoch. If another
            # such loop is around it, it runs many times.
            return Heat.WARM if around is Heat.COLD and any(loops_around(self._model, loop)) else around
        return around

    def _holds_training(self, loop: ast.For | ast.AsyncFor | ast.While) -> bool:
        """True if a loop holds one that trains by itself: a step after it is for the last gradients of an epoch."""
        inner = (each for each in loop.body if isinstance(each, (ast.For, ast.AsyncFor, ast.While)))
        works = (self.work.of(each.body) for each in inner)
        return any(work.steps and (work.runs or work.calls_run) for work in works)

    def _goes_over_state(self, loop: ast.For | ast.AsyncFor | ast.While) -> bool:
        """True if a loop iterates over named tensors, as in a checkpoint: `for name, tensor in tensors.items()`."""
        if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or last_name(loop.iter) != "items":
            return False
        holder = self._model.value(loop.iter.func.value) if isinstance(loop.iter.func, ast.Attribute) else None
        return isinstance(holder, Mapping) and any(isinstance(each, Tensor) for each in holder.element.members)

    # Functions

    def _statement(self, function: FunctionNode, statement: ast.stmt) -> Heat:
        """The heat of a statement of a function."""
        heat, info = self._function(function), self._model.module.defined_by(function)
        is_once = info is not None and info.is_generator and not runs_by_result(info, statement)
        return Heat.WARM if is_once and heat is Heat.HOT else heat

    def place(self, call: ast.expr | ast.stmt, info: FunctionInfo) -> ast.AST:
        """The node that runs as often as the function that a call calls: for a generator, in the loop over it."""
        return consumer(self._model, call) if info.is_generator else call

    def _function(self, node: FunctionNode) -> Heat:
        info = self._model.module.defined_by(node)
        if info is None:
            return Heat.WARM
        if len(self._questions.open) >= _LONGEST_CHAIN and info not in self._functions:
            return Heat.WARM
        return self._questions.remembered(self._functions, info, partial(self._function_heat, info), Heat.WARM)

    def _function_heat(self, info: FunctionInfo) -> Heat:
        declared = self._declared(info)
        if declared is not None:
            return declared
        named = self.named(info)
        known = None if named is None else named.heat
        if self._is_step(info) or (known is Heat.HOT and not self._is_called_now_and_then(info)):
            return Heat.HOT
        if keeps_results(info):
            return Heat.COLD
        callers = self.callers(info)
        if known is Heat.COLD and by_name(self._model, info) is not None and not conventions.runs_rarely(info.name):
            callers = [] if _returns_early(info.node) else [call for call in callers if self._is_sure(call, info)]
            if info.name != "__init__" and self._is_called_each_step_elsewhere(info):
                return Heat.HOT
        heats = {self.of(self.place(call, info)) for call in callers}
        if Heat.HOT in heats:
            return Heat.HOT
        if Heat.WARM in heats and Heat.COLD in heats:
            # One that calls itself runs as often as others call it.
            others = (call for call in callers if info.node not in self._model.ancestors(call))
            heats = {self.of(self.place(call, info)) for call in others}
        stays_cold = heats == {Heat.COLD} and self._is_only_for(callers, info)
        if known is Heat.COLD or stays_cold or self.work.is_whole_training(info):
            is_hot = self._is_made_each_step(info) or self._is_summed_up_each_step(info)
            return Heat.HOT if is_hot else Heat.COLD
        chain = self._model.chain(info)
        heat = Heat.WARM if chain is None or (chain.heat is Heat.COLD and Heat.WARM in heats) else chain.heat
        steps = heat is Heat.WARM and heats != {Heat.COLD} and self.training_step(info) is not None
        return Heat.HOT if steps else heat

    def training_step(self, info: FunctionInfo) -> ast.Call | None:
        """The step of an optimizer that a function takes once a call, after `backward()`; None if it takes none.

        The loop is around its calls, wherever they are: `def learn(self, batch): …; loss.backward(); optimizer.step()`.
        """
        node = info.node
        if isinstance(node, ast.Lambda):
            return None
        own = (inner for inner in own_nodes(node) if isinstance(inner, ast.Call))
        steps = (call for call in own if self.work.steps_optimizer(call) and self._is_outside_loops(call, node))
        step = next(steps, None)
        if step is None or self.work.makes_optimizer(node) or self.work.captures(node):
            return None
        return step if self.work.goes_backward(node) else None

    def _is_called_now_and_then(self, info: FunctionInfo) -> bool:
        """True if tests guard all calls of a function of a program: `if step % interval == 0: loss = estimate()`."""
        callers = [] if info.owner else self.callers(info)
        is_closed = self._model.module.is_program or self._is_only_for(callers, info)
        return bool(callers) and is_closed and all(map(self._is_guarded, callers))

    def _is_guarded(self, call: ast.AST) -> bool:
        for outer, inner in ways_out(call, self._model.ancestors(call)):
            if isinstance(outer, FUNCTIONS):
                return False
            if self.guard(outer, inner) is not None:
                return True
        return False

    def _is_made_each_step(self, info: FunctionInfo) -> bool:
        """True if code of another file that runs each step makes an object itself, unless the object is a module."""
        if info.name != "__init__" or self._model.is_module(Instance(f"{self._model.module.name}.{info.owner}")):
            return False
        chain = self._model.chain(info)
        return chain is not None and chain.heat is Heat.HOT and len(chain.calls) == 1

    def _is_summed_up_each_step(self, info: FunctionInfo) -> bool:
        """True if code of another file that runs each step leads to the method of a metric that sums it up."""
        chain = self._model.chain(info) if conventions.sums_up(info.name) else None
        return chain is not None and chain.heat is Heat.HOT

    def named(self, info: FunctionInfo) -> Named | None:
        """How often a function runs by the settings, its name or its work, or None if none of them tells."""
        if info not in self._named:
            self._named[info] = self._name_of(info)
        return self._named[info]

    def _name_of(self, info: FunctionInfo) -> Named | None:
        declared = self._declared(info)
        if declared is not None:
            return Named(declared, f"the settings list under `{declared.value}-functions`")
        if any(_registers_hook(call) for call in self._calls.given(info)):
            return Named(Heat.HOT, "runs with each pass of the module or tensor that it is a hook of")
        if info.name == "__call__" and self._is_of_each_token(info):
            return Named(Heat.HOT, "runs for each token that `generate` draws")
        return by_name(self._model, info) or runs_once(self._model, info)

    def _is_of_each_token(self, info: FunctionInfo) -> bool:
        lineage = self._model.lineage(f"{self._model.module.name}.{info.owner}") if info.owner else ()
        return any(cls.startswith("transformers.") and cls.endswith(_OF_EACH_TOKEN) for cls in lineage)

    def _declared(self, info: FunctionInfo) -> Heat | None:
        """How often a function runs by the settings."""
        return self._model.view.project.declared.heat(self._model.module.name, info.qualname)

    def _is_only_for(self, callers: Sequence[ast.AST], info: FunctionInfo) -> bool:
        """True if a function has no other callers than these in any file: it is private, or helps constructors."""
        if info.name.startswith("_") or info.outer is not None:
            return True
        return not conventions.may_run_again(info.name) and all(map(self._constructs, callers))

    def _constructs(self, call: ast.AST) -> bool:
        function = self._model.function(call)
        info = self._model.module.defined_by(function)
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
        calls = (node for node in walk(function) if isinstance(node, ast.Call) and steps_environment(node))
        return any(self._is_outside_loops(call, function) for call in calls)

    def _is_outside_loops(self, node: ast.AST, function: ast.AST) -> bool:
        for outer in self._model.ancestors(node):
            if isinstance(outer, (ast.For, ast.AsyncFor, ast.While, ast.Lambda, ast.comprehension)):
                return False
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return outer is function
        return False

    def _is_sure(self, call: ast.AST, info: FunctionInfo) -> bool:
        """True if a call is of a function for set-up, and not only until it has been set up."""
        names = (info.name, info.owner.rpartition(".")[2])
        if not isinstance(call, ast.Call) or last_name(call) not in names or not self._model.target(call):
            return False
        return _runs_again(call, self._model.ancestors(call), info)

    def _is_called_each_step_elsewhere(self, info: FunctionInfo) -> bool:
        """True if another file calls a function for set-up in each step, and not only until it is set up."""
        chain = self._model.chain(info) if not _returns_early(info.node) else None
        call = chain.calls[0] if chain is not None and chain.heat is Heat.HOT else None
        other = None if call is None or call.arguments is None else self._model.view.peek(call.path)
        if call is None or other is None:
            return False
        nodes = [node for (line, _), every in other.calls_at.items() if line == call.line for node in every]
        return all(_runs_again(node, other.symbols.ancestors(node), info) for node in nodes)

    def is_given_away(self, info: FunctionInfo) -> bool:
        """True if this file gives a function to other code, which may call it."""
        return bool(self._calls.given(info))

    def callers(self, info: FunctionInfo) -> list[ast.expr | ast.stmt]:
        """The places in this file that call a function, or may, and the hot ones that are given it to call."""
        # A hook or a factory is given away once and called often, so a cold place does not make it cold.
        given = [call for call in self._calls.given(info) if self.of(call) is Heat.HOT]
        return [*self._calls.calls(info), *given]


def _registers_hook(call: ast.Call) -> bool:
    """True for `module.register_forward_hook(f)` and `tensor.register_hook(f)`, not for hooks of state dicts."""
    name = last_name(call)
    return name.startswith("register_") and name.endswith("hook") and "state_dict" not in name


def _runs_again(call: ast.AST, ancestors: Iterable[ast.AST], info: FunctionInfo) -> bool:
    """True if a call of a function for set-up does not depend on earlier results, so that it runs again and again."""
    inner: ast.AST = call
    for outer in ancestors:
        if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test and asks_state(outer.test):
            # The mask of a step that `if self.is_causal:` makes and does not keep is made in each step.
            if info.name != "__init__" or _keeps(outer):
                return False
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return not _returns_early(outer)
        inner = outer
    return True


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
