"""Classifies calls, loops and functions: does this code step an optimizer, run a model, or loop over either?"""

from __future__ import annotations

import ast
import operator
import weakref
from collections.abc import Iterator
from functools import partial, reduce
from typing import TYPE_CHECKING, NamedTuple

from perflint.findings import Heat
from perflint.semantics.binders import LOOPS
from perflint.semantics.facts import conventions
from perflint.semantics.facts.concepts import Entry
from perflint.semantics.heat.decoding import decodes
from perflint.semantics.heat.guards import fails
from perflint.semantics.heat.turns import turns_once
from perflint.semantics.heat.work import (
    GOES_BACKWARD,
    NO_WORK,
    RUNS,
    STEPS,
    ByNames,
    Work,
    goes_backward_by_name,
    named_model,
    steps_by_name,
)
from perflint.semantics.memo import once_per_node, remembered
from perflint.semantics.questions import Questions
from perflint.semantics.regions.captured import CONTEXTS, GRAPHS
from perflint.semantics.structure import FUNCTIONS, children, last_name, names_in, path_of, walk
from perflint.semantics.values import UNKNOWN, Const, Device, Function, Instance, Mapping, Scalar, Sequence, Tensor

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred
    from perflint.semantics.module import Module
    from perflint.semantics.structure import FunctionInfo, FunctionNode

_LONGEST_CHAIN = 40
"""Functions that call each other in a row, and are followed to the first."""


_STEP_METHODS = frozenset({"torch.optim.Optimizer.step", "torch.amp.GradScaler.step", "torch.cuda.amp.GradScaler.step"})
"""Methods that step an optimizer."""
_MODULE_CALL = "torch.nn.Module.__call__"
_REPLAYS = frozenset(f"{graph}.replay" for graph in GRAPHS)
"""Methods that run a captured model."""
_BACKWARD = ("torch.Tensor.backward", "torch.autograd.backward")


class WorkMap:
    """The work of the blocks and calls of one file."""

    def __init__(self, model: Inferred) -> None:
        self._model: Inferred = weakref.proxy(model)
        self._questions = Questions()
        self._runs_model: dict[FunctionInfo, bool] = {}
        self._work: dict[ast.stmt, Work] = {}
        """By the first statement of a block."""
        self._named: dict[FunctionInfo, Work] = {}
        """By the function of another file."""
        """By the name of a class of modules."""
        self._depth = 0
        """Functions, one called by the other, whose work is looked for."""

    def of(self, body: list[ast.stmt]) -> Work:
        """The work in the statements of a block, and the functions that they call."""
        if not body:
            return NO_WORK
        # A function that calls itself does nothing more by that.
        return self._questions.remembered(self._work, body[0], partial(self._of, body), NO_WORK, operator.or_)

    def _of(self, body: list[ast.stmt]) -> Work:
        return reduce(operator.or_, map(self.inside, body))

    def inside(self, root: ast.AST) -> Work:
        work = NO_WORK
        stack = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                continue
            if isinstance(node, LOOPS) and not turns_once(node):
                over = not isinstance(node, ast.While) and self.is_over_batches(node.iter)
                inner = self.of(node.body)
                if over or inner.any:
                    # One that does nothing but step goes over several optimizers.
                    work = work | (STEPS if inner == STEPS and not over else inner.in_loop())
                continue
            if isinstance(node, ast.Call):
                work = work | self.of_call(node)
            stack += children(node)
        return work

    def is_work(self, call: ast.Call) -> bool:
        """True if a call does the work of a training or evaluation loop: it runs a model, or a step of training."""
        work = self.of_call(call)
        return work.steps or work.runs or work.calls_run

    def of_call(self, call: ast.Call) -> Work:
        """The part of training or evaluation that a call does."""
        if self.steps_optimizer(call):
            return STEPS
        target = self._model.target(call)
        if target in _BACKWARD or goes_backward_by_name(call):
            return GOES_BACKWARD
        if target in _REPLAYS:
            return RUNS
        if target == _MODULE_CALL or self._runs_by_name(call):
            return RUNS | STEPS if target == _MODULE_CALL and self._trains_itself(call) else RUNS
        work = NO_WORK
        for callee in self._model.value(call.func).members:
            if isinstance(callee, Function):
                work = work | self._of_callee(call, callee)
        runs = work == NO_WORK and (self._is_of_unknown_model(call, target) or decodes(self._model, call))
        return RUNS if runs else work

    def _is_of_unknown_model(self, call: ast.Call, target: str) -> bool:
        """True if a module of an unknown class gets a tensor in a method of its own: `model.encode(x)`."""
        owner, _, name = target.rpartition(".")
        if owner != "torch.nn.Module" or conventions.looks_up(name) or conventions.sets_up(name):
            return False
        prepares = conventions.prepares_model(name) or conventions.changes_model(name)
        return not prepares and self._gets_tensor(call)

    def _trains_itself(self, call: ast.Call) -> bool:
        """True if a call is of a module whose `forward` steps an optimizer, as its names show: a meta learner."""
        members = self._model.value(call.func).members
        return any(isinstance(member, Instance) and self._forward_steps(member.cls) for member in members)

    @remembered
    def _forward_steps(self, cls: str) -> bool:
        return any(self._by_names(*found).steps for found in _forward(self._model, cls))

    def _of_callee(self, call: ast.Call, callee: Function) -> Work:
        work = self._of_function(callee).called()
        name = callee.qualname.rpartition(".")[2]
        if isinstance(callee.receiver, Instance) and not conventions.sets_up(name):
            # A method of a model: `model.generate(ids)`, `agent.act(state)`.
            # One that gives a module only looks it up: `self.get_base_layer()`.
            runs = self._model.is_module(callee.receiver) and not self._gives_module(call)
            changes = conventions.changes_model(name) and not self._gets_tensor(call)
            prepares = conventions.prepares_model(name) or changes
            return work | RUNS if runs and not prepares and self._may_run(callee) else work
        return work

    def convention(self, call: ast.Call) -> Entry | None:
        """The convention by which a call runs a model or a step of training; None if something else shows it."""
        if self._model.target(call) in (*_STEP_METHODS, *_BACKWARD, *_REPLAYS, _MODULE_CALL):
            return None
        return steps_by_name(call) or self._runs_by_name(call)

    def _runs_by_name(self, call: ast.Call) -> Entry | None:
        """The convention by which a method, or an unknown callable, runs a model."""
        method = conventions.runs_model(call.func.attr) if isinstance(call.func, ast.Attribute) else None
        if method is not None or not self._model.value(call.func).is_unknown:
            return method
        return named_model(call.func)

    def _gives_module(self, call: ast.Call) -> bool:
        members = self._model.value(call).members
        return any(isinstance(member, Instance) and self._model.is_module(member) for member in members)

    def _gets_tensor(self, call: ast.Call) -> bool:
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        tensors = [self._model.value(argument).tensor for argument in given]
        return any(tensor is not None and tensor.leaf != "parameter" for tensor in tensors)

    def _may_run(self, function: Function) -> bool:
        """True if a method of a model may run it: not where its body calls no part of it.

        `self._fuse_batch_norm(layer)` works on weights alone.
        """
        module = self._model.view.loaded(function.module)
        info = None if module is None else module.function(function.line, function.column)
        if module is None or info is None:
            return True
        return self._runs_part(info, module.structure.methods)

    def _runs_part(self, info: FunctionInfo, methods: dict[str, list[FunctionInfo]]) -> bool:
        if isinstance(info.node, ast.Lambda) or not info.node.args.args or self._depth >= _LONGEST_CHAIN:
            return True
        compute = partial(self._finds_part, info.node, methods)
        # A method that calls itself runs nothing more by that.
        return self._questions.remembered(self._runs_model, info, compute, False)

    def _finds_part(self, node: ast.FunctionDef | ast.AsyncFunctionDef, methods: dict[str, list[FunctionInfo]]) -> bool:
        own = node.args.args[0].arg
        self._depth += 1
        # A method that only raises is abstract: other classes define it.
        found = fails(node.body) or any(
            isinstance(inner, ast.Call)
            and not names_in(inner.func).isdisjoint((own, "super"))
            and self._calls_part(inner, own, methods)
            for inner in walk(node)
        )
        self._depth -= 1
        return found

    def _calls_part(self, call: ast.Call, own: str, methods: dict[str, list[FunctionInfo]]) -> bool:
        """True if a call of something that belongs to a model runs it; `methods` are those of its file."""
        name, callee = last_name(call), self._model.value(call.func)
        if conventions.looks_up(name) or conventions.changes_model(name):
            return False
        if isinstance(callee, Function):
            return self._may_run(callee)
        if path_of(call.func) == f"{own}.{name}" and name in methods:
            return any(self._runs_part(info, methods) for info in methods[name])
        holder = self._model.value(call.func.value) if isinstance(call.func, ast.Attribute) else UNKNOWN
        return not isinstance(holder, (Tensor, Sequence, Mapping, Scalar, Const))

    def _by_names(self, module: Module, info: FunctionInfo) -> Work:
        if info not in self._named:
            self._named[info] = ByNames(module).of(info)
        return self._named[info]

    def _of_function(self, function: Function) -> Work:
        """The work in the body of a function, unless its name shows that it runs rarely."""
        module = self._model.view.loaded(function.module)
        info = None if module is None else module.function(function.line, function.column)
        if module is None or info is None or isinstance(info.node, ast.Lambda) or _is_cold_by_name(self._model, info):
            return NO_WORK
        if module is not self._model.module:
            return self._by_names(module, info)
        if self._depth >= _LONGEST_CHAIN:
            return NO_WORK
        self._depth += 1
        work = self.of(info.node.body)
        self._depth -= 1
        return work

    def is_whole_training(self, info: FunctionInfo) -> bool:
        """True if a function makes an optimizer and has the loop that steps it: all else in it runs once."""
        if isinstance(info.node, ast.Lambda):
            return False
        loops = [node for node in info.node.body if isinstance(node, (ast.For, ast.While))]
        return any(map(self.steps, loops)) and self.makes_optimizer(info.node)

    def makes_optimizer(self, root: ast.AST) -> bool:
        """True if a stretch of code constructs an optimizer of torch."""
        targets = (self._model.target(node) for node in walk(root) if isinstance(node, ast.Call))
        return any(
            target.startswith("torch.optim.") and target.count(".") == 2 and target[12].isupper() for target in targets
        )

    def captures(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """True if a function captures a CUDA graph whenever it is called: steps replay the graph."""
        blocks = [*function.body]
        while blocks:
            statement = blocks.pop()
            if isinstance(statement, ast.With):
                contexts = (item.context_expr for item in statement.items)
                if any(isinstance(each, ast.Call) and self._model.target(each) in CONTEXTS for each in contexts):
                    return True
                blocks += statement.body
        return False

    def steps_optimizer(self, call: ast.Call) -> bool:
        """True for the call of the `step` of an optimizer, or of a gradient scaler."""
        return self._model.target(call) in _STEP_METHODS or steps_by_name(call) is not None

    def acts(self, loop: ast.AST) -> ast.Call | None:
        """The call that gives an environment its action in each iteration: `env.step(action.cpu().numpy())`.

        None if no tensor decides the action, or if a loop or function inside holds the call.
        """
        return _acts(self._model, loop)

    def steps(self, loop: ast.AST) -> bool:
        """True if a stretch of code steps an optimizer."""
        return any(isinstance(node, ast.Call) and self.of_call(node).steps for node in walk(loop))

    def goes_backward(self, around: ast.AST) -> bool:
        """True if a stretch of code runs a backward pass."""
        return any(isinstance(node, ast.Call) and self.of_call(node).backward for node in walk(around))

    def trains_or_loads(self, root: ast.AST) -> bool:
        """True if a stretch of code steps an optimizer, or loops over the batches of a loader."""
        return self.steps(root) or any(
            isinstance(node, (ast.For, ast.AsyncFor)) and self.is_over_batches(node.iter) for node in walk(root)
        )

    def is_over_batches(self, node: ast.expr) -> bool:
        """True if a loop over something iterates over the batches of a loader."""
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


class Named(NamedTuple):
    """How often a function runs by its name or its work, and the reason as a clause that follows "it"."""

    heat: Heat
    why: str
    entry: Entry | None = None
    """The convention for its name; None if its work shows it."""

    @classmethod
    def by(cls, heat: Heat, entry: Entry) -> Named:
        """How often a function runs by a convention."""
        return cls(heat, entry.why, entry)


def by_name(model: Inferred, info: FunctionInfo) -> Named | None:
    """How often a function runs by its name, or None if the name does not show it.

    A function that is cold by its name is hot if code that runs each step calls it.
    """
    name = info.name
    hot = conventions.runs_each_step(name, bool(info.owner))
    if hot:
        return Named.by(Heat.HOT, hot)
    cold = conventions.sets_up(name) or _runs_rarely(model, info) or _joins_parts(info)
    checking = conventions.checks_results(name)
    cold = cold or (checking if checking and checks(model, info.node) else None) or _sums_up(model, info)
    if cold:
        return Named.by(Heat.COLD, cold)
    meter = conventions.is_meter(info.owner) if name.startswith("update") else None
    hot = meter or conventions.stands_in(name)
    return Named.by(Heat.HOT, hot) if hot else None


def _runs_rarely(model: Inferred, info: FunctionInfo) -> Entry | None:
    """Why a function runs rarely by its name; None for a method that only stores values in elements of its object."""
    entry = conventions.runs_rarely(info.name)
    return None if entry is not None and info.owner and _only_stores(model, info.node) else entry


@once_per_node
def _only_stores(model: Inferred, function: FunctionNode) -> bool:
    """True for `def save_turn(self, state): self.states[self.turn] = state`, which writes no file."""
    body = [] if isinstance(function, ast.Lambda) else function.body
    targets = [target for each in body if isinstance(each, ast.Assign) for target in each.targets]
    stores = any(isinstance(each, ast.Subscript) and path_of(each.value).startswith("self.") for each in targets)
    return stores and all(isinstance(each, (ast.Assign, ast.AugAssign)) or _is_docstring(each) for each in body)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


_OF_METRIC = {"reset", "update", "compute"}
"""The methods that all metrics have."""


def _sums_up(model: Inferred, info: FunctionInfo) -> Entry | None:
    """Why a method of a metric runs once an epoch; None for other methods, and for those of other classes."""
    entry = conventions.sums_up(info.name) if info.owner else None
    cls = model.module.klass(info.owner) if entry is not None else None
    if cls is None:
        return None
    names = (*model.lineage(f"{model.module.name}.{info.owner}"), *map(last_name, cls.node.bases))
    is_metric = cls.methods.keys() >= _OF_METRIC or any(map(conventions.is_meter, names))
    return entry if is_metric else None


def _forward(model: Inferred, cls: str) -> Iterator[tuple[Module, FunctionInfo]]:
    """The `forward` of a class of the project, with its file; none if the class has none."""
    for name in model.lineage(cls):
        found = model.view.klass(name)
        if found is not None and "forward" in found[1].methods:
            yield found[0], found[1].methods["forward"]
            return


def _is_cold_by_name(model: Inferred, info: FunctionInfo) -> bool:
    known = by_name(model, info)
    return known is not None and known.heat is Heat.COLD


def _joins_parts(info: FunctionInfo) -> Entry | None:
    """Why a method changes the weights of its object: it is given nothing to run on."""
    entry = conventions.joins_parts(info.name) if info.owner else None
    given = info.node.args
    required = len(given.posonlyargs) + len(given.args) - len(given.defaults)
    return entry if required <= 1 and None not in given.kw_defaults and given.vararg is None else None


@once_per_node
def checks(model: Inferred, node: ast.AST) -> bool:
    """True if a stretch of code asserts that tensors are alike: it is there to be right, once."""
    return any(map(_asserts_closeness, walk(node)))


def _asserts_closeness(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return bool(conventions.asserts(last_name(node)))
    asked = walk(node.test) if isinstance(node, ast.Assert) else ()
    return any(isinstance(call, ast.Call) and last_name(call) in ("allclose", "isclose") for call in asked)


def keeps_results(info: FunctionInfo) -> bool:
    """True if a function runs once for the same arguments, because a decorator caches its results."""
    return any(last_name(node) in ("cache", "lru_cache") for node in getattr(info.node, "decorator_list", ()))


_OTHER_CODE = (*LOOPS, *FUNCTIONS, ast.comprehension)


def steps_environment(call: ast.Call) -> bool:
    """True for `env.step(action)`, by the name of the environment."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return False
    return conventions.is_environment(last_name(call.func.value)) is not None


@once_per_node
def _acts(model: Inferred, loop: ast.AST) -> ast.Call | None:
    stack = [*children(loop)]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Call) and steps_environment(node) and _reads_tensor(model, node):
            return node
        if not isinstance(node, _OTHER_CODE):
            stack += children(node)
    return None


def _reads_tensor(model: Inferred, call: ast.Call) -> bool:
    """True if an argument of a call is computed from a tensor that may be on the GPU, or by code that is not known."""
    if any(isinstance(given, ast.Name) and model.value(given).is_unknown for given in call.args):
        return True
    parts = (node for given in call.args for node in walk(given) if isinstance(node, ast.expr))
    tensors = filter(None, (model.value(part).tensor for part in parts))
    return any(tensor.device not in (Device.CPU, Device.META) for tensor in tensors)
