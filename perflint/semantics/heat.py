"""How often a line runs: the loops, guards and functions around it, and who calls these."""

from __future__ import annotations

import ast
import weakref
from typing import TYPE_CHECKING

from perflint.findings import Heat
from perflint.semantics.guards import leaves, rarely
from perflint.semantics.structure import children, walk
from perflint.semantics.values import Function, Instance, Sequence

if TYPE_CHECKING:
    from perflint.semantics.model import Model
    from perflint.semantics.structure import FunctionInfo

_HOT_METHODS = frozenset(
    "forward training_step validation_step test_step predict_step compute_loss backward __torch_function__".split()
)
_COLD_FUNCTIONS = frozenset(
    """__init__ __repr__ __str__ __setstate__ __getstate__ __del__ __init_subclass__ extra_repr reset_parameters
    init_weights _init_weights state_dict load_state_dict _load_from_state_dict _save_to_state_dict from_pretrained
    save_pretrained configure_optimizers setup prepare_data main parse_args get_parser build_parser export
    on_train_epoch_end on_validation_epoch_end on_fit_start on_fit_end on_save_checkpoint on_load_checkpoint
    conftest switch_to_deploy fuse_model""".split()
)
_COLD_PREFIXES = tuple("save_ load_ plot_ test_ init_ _init_ convert_checkpoint export_ build_ setup_".split())


_LONGEST_CHAIN = 64
"""Functions that call each other in a row, and are followed to the first."""


class HeatMap:
    """The heat of every node of one file."""

    def __init__(self, model: Model) -> None:
        # The model owns its heat: no circle, so that both go when the file is done.
        self._model: Model = weakref.proxy(model)
        self._known: dict[ast.AST, Heat] = {}
        self._functions: dict[FunctionInfo, Heat] = {}
        self._running: set[FunctionInfo] = set()
        self._callers: dict[str, list[ast.Call]] | None = None
        self._guards: dict[ast.AST, ast.expr] | None = None
        self._loops: dict[ast.stmt, tuple[bool, bool]] = {}

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
        if self.guard(parent, node) is not None:
            return Heat.COLD
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self._function(parent) if node in parent.body else self._known[parent]
        around = self._known[parent]
        if isinstance(parent, (ast.For, ast.AsyncFor)) and node in parent.body:
            return self._loop(parent, around)
        if isinstance(parent, ast.While):
            return self._loop(parent, around) if node not in parent.orelse else around
        if isinstance(node, (ast.ExceptHandler, ast.Raise)):
            return Heat.COLD
        if isinstance(parent, ast.Assert) and node is parent.msg:
            return Heat.COLD
        return around

    # Guards

    def guard(self, parent: ast.AST, node: ast.AST) -> ast.expr | None:
        """The test that lets a node run only now and then, if one does."""
        test: ast.expr | None = None
        if isinstance(parent, (ast.If, ast.IfExp)) and node is not parent.test:
            is_body = node in parent.body if isinstance(parent, ast.If) else node is parent.body
            test = parent.test if rarely(parent.test, is_body) else None
        if test is None and isinstance(node, (ast.stmt, ast.expr)):
            test = self._earlier_guards().get(node)
        return None if test is None or self._selects_within_step(test) else test

    def _earlier_guards(self) -> dict[ast.AST, ast.expr]:
        """Statements after an `if not should_log: return` and operands after `should_log and`, with the test."""
        if self._guards is None:
            self._guards = {}
            for branch in self._model.nodes(ast.If):
                if leaves(branch.body) and rarely(branch.test, False):
                    for later in self._after(branch):
                        if later in self._guards:
                            break
                        self._guards[later] = branch.test
            for operation in self._model.nodes(ast.BoolOp):
                for index, value in enumerate(operation.values):
                    if rarely(value, isinstance(operation.op, ast.And)):
                        self._guards.update(dict.fromkeys(operation.values[index + 1 :], value))
                        break
        return self._guards

    def _after(self, statement: ast.stmt) -> list[ast.stmt]:
        parent = self._model.parent(statement)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, ())
            if isinstance(block, list) and statement in block:
                return block[block.index(statement) + 1 :]
        return []

    def _selects_within_step(self, test: ast.expr) -> bool:
        """Whether a test is of the variable of a loop that runs in each step itself: some layers of all."""
        names = {inner.id for inner in walk(test) if isinstance(inner, ast.Name)}
        for outer in self._model.ancestors(test):
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return False
            if isinstance(outer, (ast.For, ast.AsyncFor)):
                if names & {inner.id for inner in walk(outer.target) if isinstance(inner, ast.Name)}:
                    return self.of(outer) is Heat.HOT
        return False

    # Loops

    def _loop(self, loop: ast.For | ast.AsyncFor | ast.While, around: Heat) -> Heat:
        if around is Heat.HOT:
            return Heat.HOT
        works, holds_loop = self._work_in(loop)
        if isinstance(loop, (ast.For, ast.AsyncFor)) and self.is_over_batches(loop.iter):
            return Heat.HOT
        if works:
            return Heat.HOT
        if holds_loop:
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

    def _work_in(self, loop: ast.stmt) -> tuple[bool, bool]:
        """Whether a loop's own body trains or runs a model, and whether an inner loop does."""
        known = self._loops.get(loop)
        if known is not None:
            return known
        works = inner = False
        stack: list[ast.AST] = children(loop)
        while stack:
            node = stack.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                continue
            if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                over = not isinstance(node, ast.While) and self.is_over_batches(node.iter)
                inner_works, deeper = self._work_in(node)
                inner = inner or inner_works or deeper or over
                continue
            if isinstance(node, ast.Call) and self.is_work(node):
                works = True
            stack += children(node)
        self._loops[loop] = works and not inner, inner
        return self._loops[loop]

    def is_work(self, call: ast.Call) -> bool:
        """Whether a call is what training and evaluation loops are for: it runs a model, or a step of training."""
        target = self._model.target(call)
        if target in ("torch.nn.Module.__call__", "torch.Tensor.backward", "torch.optim.Optimizer.step"):
            return True
        callee = self._model.value(call.func)
        if isinstance(callee, Function) and isinstance(callee.receiver, Instance):
            # A method of a model: `model.generate(ids)`, `agent.act(state)`.
            name = callee.qualname.rpartition(".")[2]
            return name not in _COLD_FUNCTIONS and self._model.is_module(callee.receiver)
        if isinstance(call.func, ast.Attribute):
            return call.func.attr in ("backward", "training_step") or (
                call.func.attr == "step" and _mentions(call.func.value, "optim")
            )
        return False

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

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Heat:
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
        if known is not None:
            return known
        heats = {self.of(call) for call in self.callers(info)}
        if Heat.HOT in heats:
            return Heat.HOT
        is_private = info.name.startswith("_") or info.outer is not None
        if heats == {Heat.COLD} and is_private:
            return Heat.COLD
        return Heat.WARM

    def callers(self, info: FunctionInfo) -> list[ast.Call]:
        """The calls in this file that call a function, or may."""
        if self._callers is None:
            self._callers = {}
            for node in self._model.nodes(ast.Call):
                target = self._model.target(node)
                if not target and isinstance(node.func, ast.Attribute):
                    # Of an object that is not known: any method of this file of that name.
                    target = "." + node.func.attr
                if target:
                    self._callers.setdefault(target, []).append(node)
        known = self._callers.get(f"{self._model.module.name}.{info.qualname}", [])
        return known + self._callers.get("." + info.name, []) if info.owner else known


def by_name(info: FunctionInfo) -> Heat | None:
    """How often a function runs that is told by its name; None for all others."""
    name = info.name
    if name in _HOT_METHODS and (info.owner or name == "forward"):
        return Heat.HOT
    return Heat.COLD if name in _COLD_FUNCTIONS or name.startswith(_COLD_PREFIXES) else None


def _mentions(node: ast.expr, text: str) -> bool:
    return text in ast.unparse(node).lower()
