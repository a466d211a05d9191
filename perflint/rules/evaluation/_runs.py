"""The runs of models in a function: calls of module objects, and of code that uses one."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from enum import IntEnum

from perflint.frozen import dataclass
from perflint.rules.evaluation._scopes import Scope, Survey, assigned_to
from perflint.semantics.binders import How
from perflint.semantics.facts import conventions, rule_conventions
from perflint.semantics.memo import once_per_key
from perflint.semantics.structure import last_name, path_of
from perflint.semantics.values import Class, Function, Instance, Value

_MODULE_CALL = "torch.nn.Module.__call__"
_NO_MODEL_HOMES = ("torchmetrics.", "torchvision.transforms.")


_Names = Sequence[frozenset[str]]
"""The texts of modules that the code switches between training and evaluation."""


class Surety(IntEnum):
    """How sure it is that a call runs a model."""

    PASSED = 1
    """A model is handed to a function that is not seen."""
    NAMED = 2
    """The callee has a name that is usual for models, and nothing contradicts it."""
    PROVEN = 3
    """The object called is a module, by its class or because the code switches its mode."""


@dataclass(frozen=True, slots=True)
class Run:
    """A call that runs a model."""

    call: ast.Call
    receiver: str
    """The text of the model: "self.model"."""
    surety: Surety


@once_per_key
def runs(survey: Survey, scope: Scope) -> tuple[Run, ...]:
    """The calls of a function that run a model, in source order."""
    return tuple(_found(survey, scope))


def _found(survey: Survey, scope: Scope) -> Iterator[Run]:
    modules = [each.at_all for each in survey.switched(scope)]
    inside = survey.is_module_class(scope.klass)
    for call in scope.calls:
        if inside and path_of(call.func) in ("self", "self.forward"):
            yield Run(call, "self", Surety.PROVEN)
            continue
        run = _run(survey, call, modules)
        if run is not None:
            yield run


def mode_before(scope: Scope, run: Run) -> bool | None:
    """True if the last switch of the model before the run, in the same function, was to evaluation."""
    return mode_at(scope, run.call, run.receiver)


def mode_at(scope: Scope, call: ast.Call, receiver: str) -> bool | None:
    """True if the last switch of a receiver before a call, in the same function, was to evaluation."""
    found = scope.modes_of(receiver)
    index = bisect_right(found, call.lineno, key=lambda mode: mode.line)
    return found[index - 1].evaluating if index else None


def _is_among(name: str, modules: _Names) -> bool:
    return any(name in names for names in modules)


def _is_switched(name: str, modules: _Names) -> bool:
    return name == "self.model" or _is_among(name, modules)


def _run(survey: Survey, call: ast.Call, modules: _Names) -> Run | None:
    receiver, target = survey.module(call.func), survey.model.target(call)
    if any(_is_among(name, modules) for name in assigned_to(survey.model, call)):
        # The result is switched to a mode later, so it is a module: this call constructs it.
        return None
    if target == _MODULE_CALL:
        value = survey.model.value(call.func)
        return Run(call, receiver, Surety.PROVEN) if receiver and is_model(survey, value) else None
    unseen = calls_unseen_object(survey, call) or _calls_unseen_method(survey, call, modules)
    if target and not target.startswith("torch.nn.Module.") and not unseen:
        return None
    if _is_among(receiver, modules):
        return Run(call, receiver, Surety.PROVEN)
    owner = survey.module(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if owner and _is_switched(owner, modules):
        return Run(call, owner, Surety.PROVEN) if _is_running_method(call) else None
    if receiver and is_named_as_model(survey, call.func):
        return Run(call, receiver, Surety.NAMED)
    return _passed(survey, call, modules)


def calls_unseen_object(survey: Survey, call: ast.Call) -> bool:
    """True if the callee is an object of an unknown class, which may be a module."""
    if not survey.model.target(call).endswith(".__call__"):
        return False
    made = [member.cls for member in survey.model.value(call.func).members if isinstance(member, Instance)]
    return bool(made) and not any(_is_seen(survey, name) or rule_conventions.is_no_model_class(name) for name in made)


def _calls_unseen_method(survey: Survey, call: ast.Call, modules: _Names) -> bool:
    """True if a method of an unknown class runs the model that is switched to evaluation."""
    if not isinstance(call.func, ast.Attribute) or not _is_among(survey.module(call.func.value), modules):
        return False
    holder = survey.model.value(call.func.value)
    return isinstance(holder, Instance) and not _is_seen(survey, holder.cls)


def _is_seen(survey: Survey, name: str) -> bool:
    """True if a class is one of the project, or of torch."""
    return name.startswith("torch.") or survey.model.view.klass(name) is not None


def is_model(survey: Survey, value: Value) -> bool:
    """True if a module object is a model: not a loss, metric or transform, and calling it runs its `forward`."""
    names = [member.cls for member in value.members if isinstance(member, Instance)]
    return not names or any(
        not rule_conventions.is_no_model_class(name)
        and not name.startswith(_NO_MODEL_HOMES)
        and not _has_own_call(survey, name)
        for name in names
    )


def _has_own_call(survey: Survey, name: str) -> bool:
    """True if a class of the project, or one of its bases there, defines `__call__`."""
    classes = map(survey.model.view.klass, survey.model.lineage(name))
    return any(found is not None and "__call__" in found[1].methods for found in classes)


def _is_running_method(call: ast.Call) -> bool:
    """True if a method is named as one that runs its model: `forward_features(x)`, but not `get_image_paths()`."""
    name, has_input = last_name(call), bool(call.args or call.keywords)
    return bool(rule_conventions.runs_its_model(name) or (has_input and rule_conventions.gives_result(name)))


def is_named_as_model(survey: Survey, callee: ast.expr) -> bool:
    """True if the callee has a usual name of a model, and is not known to be something else."""
    name = last_name(callee)
    if isinstance(survey.model.value(callee), (Class, Function)) or not name[:1].islower() or name in survey.by_name:
        return False
    if name in survey.model.symbols.imported and not _is_rebound(survey, callee):
        return False
    return bool(conventions.is_model(name))


def _is_rebound(survey: Survey, name: ast.expr) -> bool:
    """True if an imported name is assigned to as well: `model = model.Transformer()`."""
    if not isinstance(name, ast.Name):
        return False
    return any(binding.how is not How.IMPORT for binding in survey.model.symbols.variable(name).bindings)


def _passed(survey: Survey, call: ast.Call, modules: _Names) -> Run | None:
    """A model handed to something that is not seen and whose result is used: `self.step(self.model, batch)`."""
    if survey.called(call) or conventions.works_on_model(last_name(call)):
        return None
    around = survey.model.parent(call)
    kept = {path_of(target) for target in around.targets} if isinstance(around, ast.Assign) else set()
    if isinstance(around, ast.Expr):
        return None
    for argument in (*call.args, *call.keywords):
        text = path_of(argument.value if isinstance(argument, ast.keyword) else argument)
        named = isinstance(argument, ast.keyword) and argument.arg == "model"
        if text and text not in kept and (named or (_is_among(text, modules) and isinstance(call.func, ast.Attribute))):
            return Run(call, text, Surety.PASSED)
    return None
