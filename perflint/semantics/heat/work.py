"""The parts of training or evaluation that code does, and those that names alone show."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from perflint.frozen import dataclass
from perflint.semantics.binders import LOOPS
from perflint.semantics.facts import conventions
from perflint.semantics.facts.concepts import Entry
from perflint.semantics.heat.turns import turns_once
from perflint.semantics.scanning import BACKWARD
from perflint.semantics.structure import children, last_name, path_of, walk

if TYPE_CHECKING:
    from perflint.semantics.module import Module
    from perflint.semantics.structure import FunctionInfo


@dataclass(frozen=True, slots=True)
class Work:
    """The parts of training or evaluation that a stretch of code does.

    `steps`: it steps an optimizer; `backward`: it goes backward; `runs`: it runs a model or goes
    backward; `loops`: it holds a loop that does either. `calls_run` and `calls_loop` say so of the
    functions that it calls. `trains`: it steps an optimizer or goes backward anywhere, in loops and
    in functions that it calls, too.
    """

    steps: bool = False
    backward: bool = False
    runs: bool = False
    loops: bool = False
    calls_run: bool = False
    calls_loop: bool = False
    trains: bool = False

    def __or__(self, other: Work) -> Work:
        return Work(
            self.steps or other.steps,
            self.backward or other.backward,
            self.runs or other.runs,
            self.loops or other.loops,
            self.calls_run or other.calls_run,
            self.calls_loop or other.calls_loop,
            self.trains or other.trains,
        )

    def called(self) -> Work:
        """The work as seen by the code that calls it."""
        return Work(
            self.steps,
            self.backward,
            calls_run=self.runs or self.calls_run,
            calls_loop=self.loops or self.calls_loop,
            trains=self.trains,
        )

    def in_loop(self) -> Work:
        """The work of a loop, by that of its body."""
        return Work(loops=True, trains=self.trains)

    @property
    def any(self) -> bool:
        """True if it does any of it."""
        return self != NO_WORK

    @property
    def is_turn(self) -> bool:
        """True if a loop that repeats it steps each time, rather than once an epoch."""
        return self.steps or (self.runs and not self.loops) or (self.calls_run and not (self.loops or self.calls_loop))


NO_WORK, STEPS, RUNS = Work(), Work(steps=True, trains=True), Work(runs=True)
GOES_BACKWARD = Work(backward=True, runs=True, trains=True)


class ByNames:
    """The work in functions of another file, as far as the names in it show."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._known: dict[FunctionInfo, Work] = {}

    def of(self, info: FunctionInfo) -> Work:
        if info not in self._known:
            # A function that calls itself does nothing more by that.
            self._known[info] = NO_WORK
            self._known[info] = NO_WORK if isinstance(info.node, ast.Lambda) else self._in(info.node.body, info.owner)
        return self._known[info]

    def _in(self, nodes: Iterable[ast.AST], owner: str) -> Work:
        work = NO_WORK
        stack = [*nodes]
        while stack:
            node = stack.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                continue
            if isinstance(node, LOOPS) and not turns_once(node):
                inner = self._in(children(node), owner)
                work = work | (inner if inner in (NO_WORK, STEPS) else inner.in_loop())
                continue
            if isinstance(node, ast.Call):
                work = work | self._of_call(node, owner)
            stack += children(node)
        return work

    def _of_call(self, call: ast.Call, owner: str) -> Work:
        if steps_by_name(call):
            return STEPS
        if goes_backward_by_name(call):
            return GOES_BACKWARD
        if runs_by_name(call):
            return RUNS
        name = last_name(call)
        if conventions.sets_up(name) or conventions.runs_rarely(name):
            return NO_WORK
        cls = self._module.klass(owner) if path_of(call.func) == f"self.{name}" else None
        callee = None if cls is None else cls.methods.get(name)
        return NO_WORK if callee is None else self.of(callee).called()


def goes_backward_by_name(call: ast.AST) -> bool:
    """True for `loss.backward()`, `accelerator.backward(loss)` and `self.manual_backward(loss)`."""
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in BACKWARD


def runs_by_name(call: ast.Call) -> bool:
    """True if the name of a called function shows that it runs a model."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return bool(conventions.runs_model(method)) or named_model(call.func) is not None


def named_model(node: ast.expr) -> Entry | None:
    """The convention by which an unknown callable is a model: `model`, `self.ema_model`, `netG`."""
    return conventions.is_model(last_name(node)) if isinstance(node, (ast.Name, ast.Attribute)) else None


def steps_by_name(call: ast.Call) -> Entry | None:
    """The convention by which `optimizer.step()` and `scaler.step(optimizer)` are steps of training."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return None
    return next(filter(None, map(named_optimizer, (call.func.value, *call.args))), None)


def named_optimizer(node: ast.expr) -> Entry | None:
    """The convention by which a name in an expression is that of an optimizer."""
    words = (getattr(part, name, None) for part in walk(node) for name in ("id", "attr", "value"))
    return next(filter(None, (conventions.is_optimizer(word) for word in words if isinstance(word, str))), None)
