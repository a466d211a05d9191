"""How often a line runs: the loops, guards and functions around it, and who calls these."""

from __future__ import annotations

import ast
import re
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflint.findings import Heat
from perflint.frozen import dataclass
from perflint.semantics.guards import asks_state, fails, fills_cache, leaves, rarely
from perflint.semantics.structure import children, last_name, names_in, walk
from perflint.semantics.values import Function, Instance, Sequence

if TYPE_CHECKING:
    from perflint.semantics.model import Model
    from perflint.semantics.structure import FunctionInfo, FunctionNode

_HOT_METHODS = frozenset(
    """forward training_step validation_step test_step predict_step compute_loss backward __torch_function__
    optimizer_step on_before_backward on_after_backward on_before_optimizer_step on_before_zero_grad""".split()
)
_HOT_HOOK = re.compile(r"on_((train|validation|test|predict)_)?(batch|step|substep)_(start|begin|end)")
"""What trainers call before and after each batch."""
_COLD_FUNCTIONS = frozenset(
    """__init__ __repr__ __str__ __setstate__ __getstate__ __del__ __init_subclass__ extra_repr reset_parameters
    init_weights _init_weights state_dict load_state_dict _load_from_state_dict _save_to_state_dict from_pretrained
    save_pretrained configure_optimizers setup prepare_data main parse_args get_parser build_parser export
    on_train_epoch_end on_validation_epoch_end on_fit_start on_fit_end on_save_checkpoint on_load_checkpoint
    conftest switch_to_deploy fuse_model""".split()
)
_COLD_PREFIXES = tuple("init_ _init_ convert_checkpoint export_ setup_".split())
_SELDOM_PREFIXES = tuple("save_ load_ plot_ test_ build_".split())
"""Names of what mostly runs seldom, also where it is not certain which code that runs each step calls it."""

_LONGEST_CHAIN = 40
"""Functions that call each other in a row, and are followed to the first."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a stretch of code does of that for which training and evaluation loops are there.

    `steps`: it steps an optimizer; `runs`: it runs a model or goes backward; `loops`: it holds a
    loop that does either. `calls_run` and `calls_loop` say so of the functions of this file that it calls.
    """

    steps: bool = False
    runs: bool = False
    loops: bool = False
    calls_run: bool = False
    calls_loop: bool = False

    def __or__(self, other: Work) -> Work:
        return Work(
            self.steps or other.steps,
            self.runs or other.runs,
            self.loops or other.loops,
            self.calls_run or other.calls_run,
            self.calls_loop or other.calls_loop,
        )

    def called(self) -> Work:
        """What it is to the code that calls it."""
        return Work(self.steps, calls_run=self.runs or self.calls_run, calls_loop=self.loops or self.calls_loop)

    @property
    def any(self) -> bool:
        """Whether it does any of it."""
        return self != _NO_WORK

    @property
    def is_turn(self) -> bool:
        """Whether a loop that repeats it steps each time, rather than once an epoch."""
        return self.steps or (self.runs and not self.loops) or (self.calls_run and not (self.loops or self.calls_loop))


_NO_WORK, _STEPS, _RUNS, _LOOPS = Work(), Work(steps=True), Work(runs=True), Work(loops=True)


class HeatMap:
    """The heat of every node of one file."""

    def __init__(self, model: Model) -> None:
        # The model owns its heat: no circle, so that both go when the file is done.
        self._model: Model = weakref.proxy(model)
        self._known: dict[ast.AST, Heat] = {}
        self._functions: dict[FunctionInfo, Heat] = {}
        self._running: set[FunctionInfo] = set()
        self._callers: dict[str, list[ast.Call]] | None = None
        self._named: dict[str, list[ast.Call]] = {}
        self._given: dict[str, list[ast.Call]] = {}
        self._guards: dict[ast.AST, ast.expr] | None = None
        self._runs_model: dict[FunctionInfo, bool] = {}
        self._work: dict[ast.stmt, Work] = {}
        """By the first statement of a block."""
        self._depth = 0
        """Functions, one called by the other, whose work is looked for."""

    def of(self, node: ast.AST) -> Heat:
        """How often a node runs."""
        chain: list[ast.AST] = []
        current: ast.AST | None = node
        while current is not None and current not in self._known:
            chain.append(current)
            current = self._model.parent(current)
        for inner in reversed(chain):
            self._known[inner] = self._step(inner)
        return self._known[node]

    def _step(self, node: ast.AST) -> Heat:
        """The heat of a node from that of the node around it."""
        parent = self._model.parent(node)
        if parent is None:
            return Heat.COLD
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return self._known[parent]
        if isinstance(node, (ast.ExceptHandler, ast.Raise)) or self.guard(parent, node) is not None:
            return Heat.COLD
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self._function(parent) if isinstance(node, ast.stmt) else self._known[parent]
        around = self._known[parent]
        if isinstance(parent, ast.Lambda) and around is not Heat.HOT and self._bound_name(parent):
            return self._function(parent)
        if isinstance(parent, (ast.For, ast.AsyncFor)) and _is_in_body(parent, node):
            return self._loop(parent, around)
        if isinstance(parent, ast.While):
            return self._loop(parent, around) if node is parent.test or _is_in_body(parent, node) else around
        if isinstance(parent, ast.Assert) and node is parent.msg:
            return Heat.COLD
        return around

    # Guards

    def guard(self, parent: ast.AST, node: ast.AST) -> ast.expr | None:
        """The test that lets a node run only now and then, if one does."""
        test: ast.expr | None = None
        if isinstance(parent, (ast.If, ast.IfExp)) and node is not parent.test:
            is_body = _is_in_body(parent, node) if isinstance(parent, ast.If) else node is parent.body
            if (
                isinstance(parent, ast.If)
                and not isinstance(node, ast.Raise)
                and (fails(parent.body if is_body else parent.orelse) or (is_body and fills_cache(parent)))
            ):
                return parent.test
            if rarely(parent.test, is_body, self._model.value) and not self._holds_step(parent, is_body):
                test = parent.test
        if test is None and isinstance(node, (ast.stmt, ast.expr)):
            test = self._earlier_guards().get(node)
        return None if test is None or self._selects_within_step(test) else test

    def _earlier_guards(self) -> dict[ast.AST, ast.expr]:
        """Statements after an `if not should_log: return` and operands after `should_log and`, with the test."""
        if self._guards is None:
            self._guards = {}
            values = self._model.value
            branches = [node for node in self._model.nodes(ast.If) if leaves(node.body)]
            tests = [node for node in branches if rarely(node.test, False, values)]
            leaving: set[ast.stmt] = set(tests)
            for parent in dict.fromkeys(self._model.parent(branch) for branch in tests):
                for name in ("body", "orelse", "finalbody"):
                    block = getattr(parent, name, ())
                    if isinstance(block, list) and not leaving.isdisjoint(block):
                        self._guard_rest(block, leaving)
            for operation in self._model.nodes(ast.BoolOp):
                for index, value in enumerate(operation.values):
                    if rarely(value, isinstance(operation.op, ast.And), values):
                        self._guards.update(dict.fromkeys(operation.values[index + 1 :], value))
                        break
        return self._guards

    def _guard_rest(self, block: list[ast.stmt], leaving: set[ast.stmt]) -> None:
        """Guard what follows the first branch of a block that mostly leaves it, unless that steps an optimizer."""
        assert self._guards is not None
        rest, steps_after = _NO_WORK, [False] * len(block)
        for index in reversed(range(len(block))):
            steps_after[index] = rest.steps
            rest = rest | self._work_inside(block[index])
        test: ast.expr | None = None
        for statement, steps in zip(block, steps_after, strict=True):
            if test is not None:
                self._guards[statement] = test
            elif statement in leaving and not steps:
                assert isinstance(statement, ast.If)
                test = statement.test

    def _holds_step(self, parent: ast.If | ast.IfExp, is_body: bool) -> bool:
        """Whether a branch steps an optimizer: gradients are accumulated, and the branch is the step."""
        if isinstance(parent, ast.IfExp):
            return False
        return self._work_of(parent.body if is_body else parent.orelse).steps

    def _selects_within_step(self, test: ast.expr) -> bool:
        """Whether a test is of the variable of a loop that runs in each step itself: some layers of all."""
        names = names_in(test)
        for outer in self._model.ancestors(test):
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return False
            if isinstance(outer, (ast.For, ast.AsyncFor)):
                if names & names_in(outer.target):
                    return self.of(outer) is Heat.HOT
        return False

    # Loops

    def _loop(self, loop: ast.For | ast.AsyncFor | ast.While, around: Heat) -> Heat:
        if around is Heat.HOT:
            return Heat.HOT
        work = self._work_of(loop.body)
        if isinstance(loop, ast.While):
            work = work | self._work_inside(loop.test)
        if isinstance(loop, (ast.For, ast.AsyncFor)) and self.is_over_batches(loop.iter):
            return Heat.HOT
        if work.is_turn:
            return Heat.HOT
        if work.loops or work.calls_loop:
            # An epoch loop: what stands beside the inner loop runs once an epoch. A loop of
            # loops inside one of these runs many times.
            return Heat.WARM if around is Heat.COLD and self._in_loop(loop) else around
        return around

    def _in_loop(self, node: ast.AST) -> bool:
        for outer in self._model.ancestors(node):
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return False
            if isinstance(outer, (ast.For, ast.AsyncFor, ast.While)):
                return True
        return False

    def _work_of(self, body: list[ast.stmt]) -> Work:
        """What the statements of a block do, and the functions of this file that they call."""
        if not body:
            return _NO_WORK
        known = self._work.get(body[0])
        if known is None:
            # A function that calls itself does nothing more by that.
            self._work[body[0]] = _NO_WORK
            known = _NO_WORK
            for statement in body:
                known = known | self._work_inside(statement)
            self._work[body[0]] = known
        return known

    def _work_inside(self, root: ast.AST) -> Work:
        work = _NO_WORK
        stack = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                continue
            if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                over = not isinstance(node, ast.While) and self.is_over_batches(node.iter)
                inner = self._work_of(node.body)
                if over or inner.any:
                    # One that does nothing but step goes over several optimizers.
                    work = work | (_STEPS if inner == _STEPS and not over else _LOOPS)
                continue
            if isinstance(node, ast.Call):
                work = work | self.work_of_call(node)
            stack += children(node)
        return work

    def is_work(self, call: ast.Call) -> bool:
        """Whether a call is what training and evaluation loops are for: it runs a model, or a step of training."""
        work = self.work_of_call(call)
        return work.steps or work.runs or work.calls_run

    def work_of_call(self, call: ast.Call) -> Work:
        """What a call does of what training and evaluation loops are for."""
        target = self._model.target(call)
        if target == "torch.optim.Optimizer.step" or _is_step(call):
            return _STEPS
        if target in ("torch.nn.Module.__call__", "torch.Tensor.backward"):
            return _RUNS
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("backward", "manual_backward", "training_step"):
            return _RUNS
        callee = self._model.value(call.func)
        if not isinstance(callee, Function):
            return _NO_WORK
        work = self._work_of_function(callee).called()
        name = callee.qualname.rpartition(".")[2]
        if isinstance(callee.receiver, Instance) and name not in _COLD_FUNCTIONS:
            # A method of a model: `model.generate(ids)`, `agent.act(state)`.
            # One that gives a module only looks it up: `self.get_base_layer()`.
            runs = self._model.is_module(callee.receiver) and not self._gives_module(call)
            return work | _RUNS if runs and (self._gets_tensor(call) or self._may_run(callee)) else work
        return work

    def _gives_module(self, call: ast.Call) -> bool:
        members = self._model.value(call).members
        return any(isinstance(member, Instance) and self._model.is_module(member) for member in members)

    def _gets_tensor(self, call: ast.Call) -> bool:
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        tensors = [self._model.value(argument).tensor for argument in given]
        return any(tensor is not None and tensor.leaf != "parameter" for tensor in tensors)

    def _may_run(self, function: Function) -> bool:
        """Whether a method of a model that gets no data may run it: not where its body calls no part of it.

        `self._fuse_batch_norm(layer)` works on weights alone.
        """
        module = self._model.module
        info = module.function(function.line, function.column) if function.module == module.name else None
        if info is None or isinstance(info.node, ast.Lambda) or not info.node.args.args:
            return True
        known = self._runs_model.get(info)
        if known is None:
            own = info.node.args.args[0].arg
            known = self._runs_model[info] = any(
                isinstance(node, ast.Call)
                and own in names_in(node.func)
                and not isinstance(self._model.value(node.func), Function)
                for node in walk(info.node)
            )
        return known

    def _work_of_function(self, function: Function) -> Work:
        """What the body of a function of this file does, unless its name says that it runs seldom."""
        module = self._model.module
        info = module.function(function.line, function.column) if function.module == module.name else None
        if info is None or isinstance(info.node, ast.Lambda) or by_name(info) is Heat.COLD:
            return _NO_WORK
        if self._depth >= _LONGEST_CHAIN:
            return _NO_WORK
        self._depth += 1
        work = self._work_of(info.node.body)
        self._depth -= 1
        return work

    def is_over_batches(self, node: ast.expr) -> bool:
        """Whether a loop over something goes over the batches of a loader."""
        value = self._model.value(node)
        for member in value.members:
            if isinstance(member, Instance) and member.cls.endswith("DataLoader"):
                return True
            if isinstance(member, Sequence):
                elements = member.element.items if isinstance(member.element, Sequence) else None
                parts = (member.element, *(elements or ()))
                if any(isinstance(part, Sequence) and part.type == "batch" for part in parts):
                    return True
        return False

    # Functions

    def _bound_name(self, node: ast.AST) -> str:
        """The plain name that a lambda is assigned to, "" where it is none."""
        statement = self._model.parent(node)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        return target.id if isinstance(target, ast.Name) else ""

    def _function(self, node: FunctionNode) -> Heat:
        info = self._model.module.function(node.lineno, node.col_offset)
        if info is None:
            return Heat.WARM
        known = self._functions.get(info)
        if known is None:
            if info in self._running or len(self._running) >= _LONGEST_CHAIN:
                return Heat.WARM
            self._running.add(info)
            known = self._functions[info] = self._function_heat(info)
            self._running.discard(info)
        return known

    def _function_heat(self, info: FunctionInfo) -> Heat:
        known = by_name(info)
        if known is Heat.HOT:
            return known
        callers = self.callers(info)
        if known is Heat.COLD and not info.name.startswith(_SELDOM_PREFIXES):
            callers = [] if _returns_early(info.node) else [call for call in callers if self._is_sure(call, info)]
        heats = {self.of(call) for call in callers}
        if Heat.HOT in heats:
            return Heat.HOT
        is_private = info.name.startswith("_") or info.outer is not None
        if known is Heat.COLD or (heats == {Heat.COLD} and is_private):
            return Heat.COLD
        return Heat.WARM

    def _is_sure(self, call: ast.Call, info: FunctionInfo) -> bool:
        """Whether a call is of a function for set-up, and not only until it has been set up."""
        if last_name(call) not in (info.name, info.owner.rpartition(".")[2]) or not self._model.target(call):
            return False
        inner: ast.AST = call
        for outer in self._model.ancestors(call):
            if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test and asks_state(outer.test):
                return False
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return not _returns_early(outer)
            inner = outer
        return True

    def callers(self, info: FunctionInfo) -> list[ast.Call]:
        """The calls in this file that call a function, or may, and those that are given it to call."""
        if self._callers is None:
            self._callers = {}
            for node in self._model.nodes(ast.Call):
                for target in self._may_call(node):
                    self._callers.setdefault(target, []).append(node)
                self._note_given(node)
                if isinstance(node.func, ast.Name):
                    self._named.setdefault(node.func.id, []).append(node)
        module = self._model.module.name
        if isinstance(info.node, ast.Lambda):
            return self._named.get(self._bound_name(info.node), [])
        known = list(self._callers.get(f"{module}.{info.qualname}", ()))
        if info.name == "__init__" and not self._model.is_module(Instance(f"{module}.{info.owner}")):
            # An object that is made in each step: a distribution, an output.
            known += self._callers.get(f"{module}.{info.owner}", ())
        elif info.owner and info.name != "__init__":
            known += self._callers.get("." + info.name, ())
            for base in self._model.lineage(f"{module}.{info.owner}")[1:]:
                # A call of the method that this one overrides.
                known += self._callers.get(f"{base}.{info.name}", ())
        # A hook or a factory is handed over once and called often: only a hot place tells something.
        given = self._given.get(f"{module}.{info.qualname}", ())
        return known + [call for call in given if self.of(call) is Heat.HOT]

    def _note_given(self, node: ast.Call) -> None:
        """Note the functions that a call gets as arguments: `optimizer.step(closure)`."""
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            if isinstance(argument, (ast.Name, ast.Attribute)):
                value = self._model.value(argument)
                if isinstance(value, Function):
                    self._given.setdefault(f"{value.module}.{value.qualname}", []).append(node)

    def _may_call(self, node: ast.Call) -> Iterator[str]:
        """What a call may call: full names, and names of methods with a dot in front."""
        target = self._model.target(node)
        members = self._model.value(node.func).members
        if target:
            yield from {target, *(f"{m.module}.{m.qualname}" for m in members if isinstance(m, Function))}
        elif isinstance(node.func, ast.Attribute):
            # Of an object that is not known: any method of this file of that name.
            yield "." + node.func.attr
        hook = node.args[0] if node.args else None
        if isinstance(hook, ast.Constant) and isinstance(hook.value, str) and "_" in hook.value:
            # `self.run_hooks("on_batch_end", loss)`.
            yield "." + hook.value


def by_name(info: FunctionInfo) -> Heat | None:
    """How often a function runs that is told by its name; None for all others.

    What is cold by its name is hot if code that runs each step calls it.
    """
    name = info.name
    known = {name, name.lstrip("_")} & _HOT_METHODS or _HOT_HOOK.fullmatch(name.lstrip("_"))
    if known and (info.owner or name == "forward"):
        return Heat.HOT
    return Heat.COLD if name in _COLD_FUNCTIONS or name.startswith(_COLD_PREFIXES + _SELDOM_PREFIXES) else None


def _is_in_body(parent: ast.For | ast.AsyncFor | ast.While | ast.If, node: ast.AST) -> bool:
    """Whether a part of a compound statement is in its first block; told by its place, for blocks may be long."""
    if not isinstance(node, ast.stmt) or not parent.orelse:
        return isinstance(node, ast.stmt)
    start = parent.orelse[0]
    return (node.lineno, node.col_offset) < (start.lineno, start.col_offset)


def _returns_early(node: FunctionNode) -> bool:
    """Whether a function leaves where what it makes is there: `if self.table is not None: return`."""
    body = [] if isinstance(node, ast.Lambda) else node.body
    return any(isinstance(inner, ast.If) and leaves(inner.body) and asks_state(inner.test) for inner in body)


def _is_step(call: ast.Call) -> bool:
    """`optimizer.step()` of something that is only called so, `scaler.step(optimizer)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return False
    return any(map(_is_optimizer, (call.func.value, *call.args)))


def _is_optimizer(node: ast.expr) -> bool:
    words = (getattr(part, name, None) for part in walk(node) for name in ("id", "attr", "value"))
    return any(isinstance(word, str) and ("optim" in word.lower() or word == "opt") for word in words)
