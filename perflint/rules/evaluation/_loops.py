"""What is an evaluation: a function or a loop that runs a model and wants no gradient."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from perflint.findings import Confidence, Heat
from perflint.frozen import dataclass
from perflint.rules._methods import in_tests
from perflint.rules.evaluation._runs import Run, Surety, mode_before, modes, runs
from perflint.rules.evaluation._scopes import LOOPS, Loop, Scope, Survey, dotted, words
from perflint.semantics.structure import last_name, walk
from perflint.semantics.values import Instance

EVALUATING_WORDS = frozenset(
    {"eval", "evaluate", "evaluation", "infer", "inference", "predict", "prediction", "predictions",
     "test", "testing", "val", "valid", "validate", "validation"}
)  # fmt: skip
GENERATING_WORDS = frozenset(
    {"caption", "decode", "denoise", "generate", "sample", "sampling", "transcribe", "translate"}
)
_TRAINING_WORDS = frozenset(
    {"adversarial", "attack", "attribution", "backward", "distill", "finetune", "fit", "forces", "force", "grad",
     "gradcam", "hessian", "jacobian", "learn", "loss", "optimize", "perturb", "pgd", "pretrain", "saliency",
     "train", "training"}
)  # fmt: skip
_GRADIENT_CALLS = frozenset(
    {"backward", "enable_grad", "jacfwd", "jacrev", "jvp", "manual_backward", "retain_grad", "vjp", "vhp", "zero_grad"}
)
_DATA_WORDS = frozenset(
    {"batches", "data", "dataloader", "dataset", "iterator", "iter", "loader", "loaders", "samples"}
)
_HOST_READS = frozenset(
    {"argmax", "argsort", "cpu", "detach", "item", "numpy", "save", "save_image", "tolist", "topk", "update"}
)
_FRAMEWORK_HOOKS = frozenset(
    {"on_validation_batch_end", "predict_step", "prediction_step", "test_epoch_end", "test_step", "validation_step",
     "validation_epoch_end"}
)  # fmt: skip
_PLAIN_BASES = frozenset({"ABC", "Module", "object", "Protocol", "Generic"})


@dataclass(frozen=True, eq=False)
class Region:
    """A whole function that only evaluates (`loop` is None), or a loop that does so inside other code."""

    survey: Survey
    scope: Scope
    loop: Loop | None
    runs: tuple[Run, ...]

    @property
    def node(self) -> ast.AST:
        """The function, the loop, or the file."""
        return self.loop or self.scope.node

    @cached_property
    def is_named(self) -> bool:
        """Whether the function is named as evaluations are."""
        return bool(EVALUATING_WORDS.intersection(words(self.scope.name)))

    @cached_property
    def generates(self) -> bool:
        """Whether the function is named as sampling and decoding functions are."""
        return any(GENERATING_WORDS.intersection(words(scope.name)) for scope in self.scope.chain)

    @cached_property
    def switched(self) -> bool:
        """Whether the function puts a model that it runs into evaluation mode first."""
        return any(mode_before(self.scope, run) is True for run in self.runs)

    @cached_property
    def switched_outside(self) -> bool:
        """Whether the code around the function, or its class, does so."""
        receivers = {run.receiver for run in self.runs}
        return any(mode.evaluating and mode.receiver in receivers for mode in modes(self.survey, self.scope))

    def loop_of(self, run: Run) -> Loop | None:
        """The innermost loop of the function around a run."""
        for outer in self.survey.model.ancestors(run.call):
            if isinstance(outer, LOOPS):
                return outer
            if outer is self.scope.node:
                return None
        return None

    @cached_property
    def over_data(self) -> bool:
        """Whether a run stands in a loop over a loader or a data set."""
        return any(self._is_over_data(run) for run in self.runs)

    def _is_over_data(self, run: Run) -> bool:
        for outer in self.survey.model.ancestors(run.call):
            if outer is self.scope.node:
                return False
            if isinstance(outer, LOOPS) and any(is_data(self.survey, source) for source in iterated(outer)):
                return True
        return False

    @cached_property
    def reduces(self) -> bool:
        """Whether results are read by the host or handed to a metric."""
        return any(isinstance(node, ast.Call) and last_name(node) in _HOST_READS for node in walk(self.node))

    @cached_property
    def heat(self) -> Heat:
        """How often the runs happen."""
        found = {self.survey.model.heat(run.call) for run in self.runs}
        return next(heat for heat in (Heat.HOT, Heat.WARM, Heat.COLD) if heat in found)

    @property
    def is_foreign(self) -> bool:
        """Whether the function is a method of a class whose base, not seen here, may call it."""
        return is_foreign(self.survey, self.scope)


def is_foreign(survey: Survey, scope: Scope) -> bool:
    """Whether a function is a method of a class whose base, not seen here, may call it."""
    if scope.owner is None:
        return False
    known = _PLAIN_BASES | survey.classes.keys()
    return any(last_name(base) not in known for base in scope.owner.bases)


def is_data(survey: Survey, source: ast.expr) -> bool:
    """Whether what a loop goes over is a loader or a data set, by its class or its name."""
    for node in walk(source):
        if not isinstance(node, (ast.Name, ast.Attribute)):
            continue
        value = survey.model.value(node)
        if isinstance(value, Instance) and value.cls.startswith("torch.utils.data."):
            return True
        if _DATA_WORDS.intersection(words(last_name(node))):
            return True
    return False


def iterated(loop: ast.AST) -> Iterator[ast.expr]:
    """What a loop or comprehension iterates over."""
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        yield loop.iter
    elif isinstance(loop, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        yield from (generator.iter for generator in loop.generators)


def regions(survey: Survey) -> Iterator[Region]:
    """The evaluations of a file; none in tests and where its models are another library's."""
    roots = {full.partition(".")[0] for full in survey.model.module.imports.values()}
    if ("torch" not in roots and not roots.isdisjoint(_OTHER_LIBRARIES)) or in_tests(survey.model):
        return
    for scope in survey.scopes:
        if is_other_code(survey, scope):
            continue
        found = tuple(runs(survey, scope))
        if survey.is_module_class(scope.klass):
            # The layers of a model are its caller's business; a method that runs the whole model is not.
            found = tuple(run for run in found if run.receiver == "self")
        if not found:
            continue
        if trains(survey, scope):
            yield from _loops(survey, scope, found)
        else:
            yield Region(survey, scope, None, found)


_OTHER_LIBRARIES = frozenset({"flax", "jax", "keras", "mxnet", "paddle", "tensorflow"})
_DEFINED = re.compile(r"def (\w+)\(")
_LOOPED = re.compile(r"for [^\n]* in ([^\n]*)")


def defines(text: str, wanted: frozenset[str]) -> bool:
    """Whether a file defines a function with one of some words in its name; cheap, for a first look."""
    return any(not wanted.isdisjoint(words(name)) for name in set(_DEFINED.findall(text)))


def loops_over_data(text: str, wanted: frozenset[str] = frozenset()) -> bool:
    """Whether a line of a file loops over data, which `wanted` words name if there are any; as cheap."""
    for source in set(_LOOPED.findall(text)):
        parts = words(source)
        if not _DATA_WORDS.isdisjoint(parts) and (not wanted or not wanted.isdisjoint(parts)):
            return True
    return False


def trains(survey: Survey, scope: Scope) -> bool:
    """Whether code trains, by what it does or by its name; the top level of a file may do anything."""
    parts = set(words(scope.name))
    named = bool(parts & _TRAINING_WORDS) and not parts & EVALUATING_WORDS
    return isinstance(scope.node, ast.Module) or named or wants_gradient(survey, scope.node)


def is_other_code(survey: Survey, scope: Scope) -> bool:
    """Functions that are parts of a model, hooks that a framework wraps, unit tests."""
    if isinstance(scope.node, ast.Module):
        return False
    if scope.name.startswith(("forward", "__")) or scope.name in _FRAMEWORK_HOOKS:
        return True
    return _is_unit_test(survey, scope)


def _is_unit_test(survey: Survey, scope: Scope) -> bool:
    if in_tests(survey.model):
        return True
    if scope.owner is not None and (
        scope.owner.name.startswith("Test") or "TestCase" in map(last_name, scope.owner.bases)
    ):
        return True
    arguments = [] if isinstance(scope.node, ast.Module) else [argument.arg for argument in scope.node.args.args]
    return scope.name.startswith("test_") and arguments in ([], ["self"])


def _loops(survey: Survey, scope: Scope, found: tuple[Run, ...]) -> Iterator[Region]:
    """The outermost loops without training that run a model which was put into evaluation mode, or held-out data."""
    grouped: dict[Loop, list[Run]] = {}
    for run in found:
        loop = _outermost_evaluating(survey, scope, run)
        if loop is not None:
            grouped.setdefault(loop, []).append(run)
    for loop, inside in grouped.items():
        region = Region(survey, scope, loop, tuple(inside))
        if region.switched or _is_held_out(loop):
            yield region


def _outermost_evaluating(survey: Survey, scope: Scope, run: Run) -> Loop | None:
    best: Loop | None = None
    for outer in survey.model.ancestors(run.call):
        if outer is scope.node:
            break
        if isinstance(outer, LOOPS):
            if wants_gradient(survey, outer):
                break
            best = outer
    return best


def _is_held_out(loop: Loop) -> bool:
    """Whether a loop goes over data that is named as held out: `val_loader`."""
    for source in iterated(loop):
        for node in walk(source):
            parts = set(words(last_name(node))) if isinstance(node, (ast.Name, ast.Attribute)) else set()
            if parts & EVALUATING_WORDS and parts & _DATA_WORDS:
                return True
    return False


def wants_gradient(survey: Survey, node: ast.AST) -> bool:
    """Whether code computes gradients or asks for them: backward, an optimizer's step, autograd.grad, an attack."""
    return any(_wants_gradient(survey, inner) for inner in walk(node))


def _wants_gradient(survey: Survey, node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "grad" and not isinstance(node.value, ast.Attribute)
    if isinstance(node, ast.keyword):
        return node.arg in ("requires_grad", "create_graph") and _is_true(node.value)
    if isinstance(node, ast.Assign):
        return any(last_name(target) == "requires_grad" for target in node.targets) and _is_true(node.value)
    return isinstance(node, ast.Call) and _is_gradient_call(survey, node)


def _is_gradient_call(survey: Survey, call: ast.Call) -> bool:
    name = last_name(call)
    if name in _GRADIENT_CALLS or dotted(call.func).endswith(
        ("autograd.grad", "functional.jacobian", "functional.hessian")
    ):
        return True
    if name == "requires_grad_":
        return not call.args or _is_true(call.args[0])
    if name == "train":
        # `model.train()` switches a mode; `train(model, loader)` trains.
        return isinstance(call.func, ast.Name)
    if name == "step" and isinstance(call.func, ast.Attribute):
        return _is_optimizer(survey, call.func.value)
    return bool(_TRAINING_WORDS.intersection(words(name)) - {"loss", "fit", "force", "grad"}) and name != "is_training"


def _is_optimizer(survey: Survey, node: ast.expr) -> bool:
    value = survey.model.value(node)
    if isinstance(value, Instance):
        return value.cls.startswith("torch.optim.") and ".lr_scheduler" not in value.cls
    return bool({"optim", "optimizer", "opt", "scaler"}.intersection(words(last_name(node))))


def _is_true(node: ast.expr) -> bool:
    return not (isinstance(node, ast.Constant) and node.value is False)


def is_frozen(region: Region, run: Run) -> bool:
    """Whether the function freezes all parameters of the model that it runs."""
    for around in region.scope.chain:
        for node in around.nodes:
            if (
                isinstance(node, ast.Call)
                and last_name(node) == "requires_grad_"
                and isinstance(node.func, ast.Attribute)
            ):
                if dotted(node.func.value) == run.receiver and node.args and not _is_true(node.args[0]):
                    return True
            elif isinstance(node, ast.For) and _freezes(node, run.receiver):
                return True
    return False


def _freezes(loop: ast.For, receiver: str) -> bool:
    source = loop.iter
    if not isinstance(source, ast.Call) or dotted(source.func) != f"{receiver}.parameters":
        return False
    for node in walk(loop):
        if isinstance(node, ast.Assign) and any(last_name(target) == "requires_grad" for target in node.targets):
            return not _is_true(node.value)
        if isinstance(node, ast.Call) and last_name(node) == "requires_grad_" and node.args:
            return not _is_true(node.args[0])
    return False


def evaluates(survey: Survey, scope: Scope, within: ast.AST) -> bool:
    """Whether `within`, a function or a statement of `scope`, runs a model in order to evaluate it."""
    if is_other_code(survey, scope) or not _runs_deep(survey, scope, within, 4):
        return False
    names = {word for around in scope.chain for word in words(around.name)}
    inside = [node for node in walk(within) if isinstance(node, LOOPS)]
    if trains(survey, scope) and scope.name and within is not scope.node:
        return bool(inside) and any(mode.evaluating for mode in scope.modes)
    if names & (EVALUATING_WORDS | GENERATING_WORDS) or any(mode.evaluating for mode in modes(survey, scope)):
        return True
    return any(is_data(survey, source) for loop in inside for source in iterated(loop))


def _runs_deep(survey: Survey, scope: Scope, within: ast.AST, depth: int) -> bool:
    """Whether code runs a model itself, or calls a function of the file that does."""
    inside = set(walk(within))
    if any(run.call in inside for run in runs(survey, scope)):
        return True
    if depth == 0:
        return False
    called = [other for node in inside if isinstance(node, ast.Call) for other in survey.called(node)]
    return any(other is not scope and _runs_deep(survey, other, other.node, depth - 1) for other in called)


def confidence(region: Region, run: Run) -> Confidence | None:
    """How sure it is that a run of a region is an evaluation; None where too little says so."""
    looped = region.loop is not None or region.loop_of(run) is not None
    if region.switched:
        if run.surety is Surety.PASSED:
            return Confidence.LOW if looped else None
        if looped:
            return Confidence.HIGH if region.over_data or region.reduces else Confidence.MEDIUM
        return Confidence.MEDIUM if region.is_named or region.reduces else Confidence.LOW
    if run.surety is Surety.PASSED:
        return None
    if region.switched_outside:
        return Confidence.MEDIUM if region.is_named or (looped and region.reduces) else Confidence.LOW
    if region.loop is not None or (region.is_named and looped):
        return Confidence.MEDIUM
    if region.is_named and region.reduces:
        return Confidence.LOW
    return Confidence.LOW if region.generates and (looped or run.receiver == "self") else None
