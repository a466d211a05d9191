"""What loops and functions do of that for which training and evaluation are there: steps, and runs of a model."""

from __future__ import annotations

import ast
import re
import weakref
from typing import TYPE_CHECKING

from perflint.findings import Heat
from perflint.frozen import dataclass
from perflint.semantics.guards import fails
from perflint.semantics.structure import children, last_name, names_in, path_of, walk
from perflint.semantics.values import UNKNOWN, Const, Function, Instance, Mapping, Scalar, Sequence, Tensor, Unknown

if TYPE_CHECKING:
    from perflint.semantics.model import Model
    from perflint.semantics.project import Module
    from perflint.semantics.structure import FunctionInfo

_HOT_METHODS = frozenset(
    """forward training_step validation_step test_step predict_step compute_loss backward __torch_function__
    optimizer_step on_before_backward on_after_backward on_before_optimizer_step on_before_zero_grad""".split()
)
_HOT_FUNCTIONS = frozenset(
    """forward forward_step backward_step train_step training_step val_step eval_step prediction_step train_batch
    eval_batch train_on_batch optimize_parameters select_action choose_action decode_one_token""".split()
)
"""Names of what runs in each step also where it is no method."""
_HOT_HOOK = re.compile(r"on_((train|validation|test|predict)_)?(batch|step|substep)_(start|begin|end)")
"""What trainers call before and after each batch."""
_PATCHED_FORWARD = re.compile(
    r"(?!(get|make|create|register|replace|patch|wrap|set|is|has|needs|check|compare|time|profile)_)\w+_forward"
)
"""What takes the place of a model's `forward`: `llama_attention_forward`."""
_LOSS = re.compile(r"(?!(get|log|print|plot|save|show|write|record|make|create|set|is|has|add|register)_)\w+_loss")
"""Functions that compute a loss: `dice_loss`."""
_METER = re.compile(r"(.*\.)?\w*(Metric|Metrics|MetricBag|Meter)")
_COLD_FUNCTIONS = frozenset(
    """__init__ __repr__ __str__ __setstate__ __getstate__ __del__ __init_subclass__ extra_repr reset_parameters
    init_weights _init_weights state_dict load_state_dict _load_from_state_dict _save_to_state_dict from_pretrained
    save_pretrained configure_optimizers setup prepare_data main parse_args get_parser build_parser export
    on_train_epoch_end on_validation_epoch_end on_fit_start on_fit_end on_save_checkpoint on_load_checkpoint
    conftest switch_to_deploy fuse_model __eq__ __ne__ equals""".split()
)
_COLD_PREFIXES = tuple("init_ _init_ convert_checkpoint export_ setup_ assert_".split())
_COLD_SUFFIXES = ("_equal", "_equals")
"""Comparing two models or lists of tensors is for tests and for settings."""
_SELDOM_PREFIXES = tuple("save_ load_ plot_ test_ build_".split())
"""Names of what mostly runs seldom, also where it is not certain which code that runs each step calls it."""

_SET_UP_VERBS = frozenset(
    """add remove delete register unregister replace inject create build set reset load save enable disable freeze
    unfreeze merge unmerge fuse unfuse unwrap check""".split()
)
_SET_UP_OBJECTS = frozenset("weight weights bias parameter parameters params state adapter adapters config".split())
"""Words of the names of methods that change or look up parts of a model rather than run it, unless they get data."""
_JOINING = frozenset("merge unmerge fuse unfuse reparameterize".split())
"""What methods do that turn adapters or branches of a model into one set of weights, and back."""

_LOOK_UPS = frozenset(
    """keys values items get pop append extend insert update index copy clone size dim numel item detach data_ptr
    parameters named_parameters buffers named_buffers modules named_modules children named_children
    get_submodule get_parameter get_buffer state_dict load_state_dict train eval requires_grad_ zero_grad
    to type cuda cpu half float double bfloat16 contiguous t view reshape permute transpose
    register_buffer register_parameter register_module add_module apply extra_repr info debug warning""".split()
)
"""Methods of modules, of what holds them and of their parameters that run no part of a model."""

_RUN_BY_NAME = ("forward", "backward", "manual_backward", "training_step")
"""Methods that run a model, whatever they are called on."""

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
        return self != NO_WORK

    @property
    def is_turn(self) -> bool:
        """Whether a loop that repeats it steps each time, rather than once an epoch."""
        return self.steps or (self.runs and not self.loops) or (self.calls_run and not (self.loops or self.calls_loop))


NO_WORK, _STEPS, _RUNS, _LOOPS = Work(), Work(steps=True), Work(runs=True), Work(loops=True)


class WorkMap:
    """The work of the blocks and calls of one file."""

    def __init__(self, model: Model) -> None:
        self._model: Model = weakref.proxy(model)
        self._runs_model: dict[FunctionInfo, bool] = {}
        self._work: dict[ast.stmt, Work] = {}
        """By the first statement of a block."""
        self._depth = 0
        """Functions, one called by the other, whose work is looked for."""

    def of(self, body: list[ast.stmt]) -> Work:
        """What the statements of a block do, and the functions of this file that they call."""
        if not body:
            return NO_WORK
        known = self._work.get(body[0])
        if known is None:
            # A function that calls itself does nothing more by that.
            self._work[body[0]] = NO_WORK
            known = NO_WORK
            for statement in body:
                known = known | self.inside(statement)
            self._work[body[0]] = known
        return known

    def inside(self, root: ast.AST) -> Work:
        work = NO_WORK
        stack = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                continue
            if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                over = not isinstance(node, ast.While) and self.is_over_batches(node.iter)
                inner = self.of(node.body)
                if over or inner.any:
                    # One that does nothing but step goes over several optimizers.
                    work = work | (_STEPS if inner == _STEPS and not over else _LOOPS)
                continue
            if isinstance(node, ast.Call):
                work = work | self.of_call(node)
            stack += children(node)
        return work

    def is_work(self, call: ast.Call) -> bool:
        """Whether a call is what training and evaluation loops are for: it runs a model, or a step of training."""
        work = self.of_call(call)
        return work.steps or work.runs or work.calls_run

    def of_call(self, call: ast.Call) -> Work:
        """What a call does of what training and evaluation loops are for."""
        target = self._model.target(call)
        if target == "torch.optim.Optimizer.step" or _is_step(call):
            return _STEPS
        if target in ("torch.nn.Module.__call__", "torch.Tensor.backward"):
            return _RUNS
        if isinstance(call.func, ast.Attribute) and call.func.attr in _RUN_BY_NAME:
            return _RUNS
        callee = self._model.value(call.func)
        if isinstance(callee, Unknown) and _is_named_model(call.func):
            return _RUNS
        if not isinstance(callee, Function):
            return NO_WORK
        work = self._of_function(callee).called()
        name = callee.qualname.rpartition(".")[2]
        if isinstance(callee.receiver, Instance) and name not in _COLD_FUNCTIONS:
            # A method of a model: `model.generate(ids)`, `agent.act(state)`.
            # One that gives a module only looks it up: `self.get_base_layer()`.
            runs = self._model.is_module(callee.receiver) and not self._gives_module(call)
            seldom = name.startswith(("plot_", "save_", "load_", "build_"))
            prepares = seldom or name in _LOOK_UPS or (_is_for_set_up(name) and not self._gets_tensor(call))
            return work | _RUNS if runs and not prepares and self._may_run(callee) else work
        return work

    def _gives_module(self, call: ast.Call) -> bool:
        members = self._model.value(call).members
        return any(isinstance(member, Instance) and self._model.is_module(member) for member in members)

    def _gets_tensor(self, call: ast.Call) -> bool:
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        tensors = [self._model.value(argument).tensor for argument in given]
        return any(tensor is not None and tensor.leaf != "parameter" for tensor in tensors)

    def _may_run(self, function: Function) -> bool:
        """Whether a method of a model may run it: not where its body calls no part of it.

        `self._fuse_batch_norm(layer)` works on weights alone.
        """
        module = self._model.project.loaded(function.module)
        info = None if module is None else module.function(function.line, function.column)
        if module is None or info is None:
            return True
        return self._runs_part(info, module.structure.methods)

    def _runs_part(self, info: FunctionInfo, methods: dict[str, list[FunctionInfo]]) -> bool:
        known = self._runs_model.get(info)
        if isinstance(info.node, ast.Lambda):
            return True
        if known is None and (self._depth >= _LONGEST_CHAIN or not info.node.args.args):
            return True
        if known is None:
            # A method that calls itself runs nothing more by that.
            self._runs_model[info] = False
            own = info.node.args.args[0].arg
            self._depth += 1
            # What only fails is for other classes to define.
            known = self._runs_model[info] = fails(info.node.body) or any(
                isinstance(node, ast.Call)
                and not names_in(node.func).isdisjoint((own, "super"))
                and self._calls_part(node, own, methods)
                for node in walk(info.node)
            )
            self._depth -= 1
        return known

    def _calls_part(self, call: ast.Call, own: str, methods: dict[str, list[FunctionInfo]]) -> bool:
        """Whether a call of something that belongs to a model runs it; `methods` are those of its file."""
        name, callee = last_name(call), self._model.value(call.func)
        if name in _LOOK_UPS or _is_for_set_up(name):
            return False
        if isinstance(callee, Function):
            return self._may_run(callee)
        if path_of(call.func) == f"{own}.{name}" and name in methods:
            return any(self._runs_part(info, methods) for info in methods[name])
        holder = self._model.value(call.func.value) if isinstance(call.func, ast.Attribute) else UNKNOWN
        return not isinstance(holder, (Tensor, Sequence, Mapping, Scalar, Const))

    def _of_function(self, function: Function) -> Work:
        """What the body of a function of this file does, unless its name says that it runs seldom."""
        module = self._model.module
        info = module.function(function.line, function.column) if function.module == module.name else None
        if info is None or isinstance(info.node, ast.Lambda) or by_name(info) is Heat.COLD:
            return NO_WORK
        if self._depth >= _LONGEST_CHAIN:
            return NO_WORK
        self._depth += 1
        work = self.of(info.node.body)
        self._depth -= 1
        return work

    def is_whole_training(self, info: FunctionInfo) -> bool:
        """Whether a function makes an optimizer and has the loop that steps it: all else in it runs once."""
        if isinstance(info.node, ast.Lambda):
            return False
        loops = [node for node in info.node.body if isinstance(node, (ast.For, ast.While))]
        return any(map(self._steps, loops)) and any(map(self._makes_optimizer, walk(info.node)))

    def _makes_optimizer(self, node: ast.AST) -> bool:
        target = self._model.target(node) if isinstance(node, ast.Call) else ""
        return target.startswith("torch.optim.") and target.count(".") == 2 and target[12].isupper()

    def _steps(self, loop: ast.AST) -> bool:
        return any(isinstance(node, ast.Call) and self.of_call(node).steps for node in walk(loop))

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


def by_name(info: FunctionInfo) -> Heat | None:
    """How often a function runs that is told by its name; None for all others.

    What is cold by its name is hot if code that runs each step calls it.
    """
    name = info.name
    known = {name, name.lstrip("_")} & (_HOT_METHODS | _HOT_FUNCTIONS) or _HOT_HOOK.fullmatch(name.lstrip("_"))
    if (known or name.startswith(("forward_", "backward_"))) and (info.owner or name in _HOT_FUNCTIONS):
        return Heat.HOT
    if _joins_parts(info) or name in _COLD_FUNCTIONS or name.startswith(_COLD_PREFIXES + _SELDOM_PREFIXES):
        return Heat.COLD
    if name.endswith(_COLD_SUFFIXES) or (name.lstrip("_").startswith(("check_", "verify_")) and checks(info.node)):
        return Heat.COLD
    is_meter = _METER.fullmatch(info.owner) and name.startswith("update")
    return Heat.HOT if is_meter or _PATCHED_FORWARD.fullmatch(name) or _LOSS.fullmatch(name) else None


def _joins_parts(info: FunctionInfo) -> bool:
    """Whether a method makes one of the parameters that its object holds: it is given nothing to run on."""
    if not info.owner or info.name.strip("_").split("_")[0] not in _JOINING:
        return False
    given = info.node.args
    required = len(given.posonlyargs) + len(given.args) - len(given.defaults)
    return required <= 1 and None not in given.kw_defaults and given.vararg is None


def checks(node: ast.AST) -> bool:
    """Whether a stretch of code asserts that tensors are alike: it is there to be right, once."""
    return any(
        isinstance(inner, ast.Assert)
        and any(isinstance(call, ast.Call) and last_name(call) in ("allclose", "isclose") for call in walk(inner.test))
        for inner in walk(node)
    )


def keeps_results(info: FunctionInfo) -> bool:
    """Whether a function runs once for the same arguments, as its decorator keeps what it returns."""
    return any(last_name(node) in ("cache", "lru_cache") for node in getattr(info.node, "decorator_list", ()))


def holds_tests(module: Module) -> bool:
    """Whether a file is one of tests, as pytest and unittest look for them: its work is to be right, once.

    `test_on_images.py` that neither has a `test_…` and asserts anything nor asks for a library of tests is a program.
    """
    name = module.path.name
    if not name.startswith("test_") and not name.endswith("_test.py"):
        return name == "conftest.py"
    nodes = module.structure.nodes
    imported = {alias.name for node in nodes.get(ast.Import, ()) for alias in node.names}  # type: ignore[attr-defined]
    imported |= {node.module for node in nodes.get(ast.ImportFrom, ())}  # type: ignore[attr-defined]
    if not imported.isdisjoint(("pytest", "unittest")):
        return True
    holds = any(info.name.startswith("test_") for info in module.structure.functions.values())
    return holds and bool(nodes.get(ast.Assert))


def _is_for_set_up(name: str) -> bool:
    words = name.strip("_").split("_")
    return words[0] in _SET_UP_VERBS or not _SET_UP_OBJECTS.isdisjoint(words)


def is_seldom(info: FunctionInfo) -> bool:
    """Whether a function's name is one of what only mostly runs seldom."""
    return info.name.startswith(_SELDOM_PREFIXES)


def _is_named_model(node: ast.expr) -> bool:
    """`model`, `self.ema_model`, `netG`: what nobody knows, and is called as models are."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    words = last_name(node).lower().split("_")
    return words[-1] in _MODELS and _MAKING.isdisjoint(words)


_MODELS = frozenset("model net network unet netg netd policy".split())
_MAKING = frozenset(
    """get make build create load save init setup wrap prepare compile define select choose convert export update test
    fit train eval evaluate run print log""".split()
)
"""Words of the names of functions that do something with a model."""


def _is_step(call: ast.Call) -> bool:
    """`optimizer.step()` of something that is only called so, `scaler.step(optimizer)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return False
    return any(map(_is_optimizer, (call.func.value, *call.args)))


def _is_optimizer(node: ast.expr) -> bool:
    words = (getattr(part, name, None) for part in walk(node) for name in ("id", "attr", "value"))
    return any(isinstance(word, str) and ("optim" in word.lower() or word == "opt") for word in words)
