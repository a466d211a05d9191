"""Decides if training and evaluation mode differ for a model: if it holds dropout or batch normalisation."""

from __future__ import annotations

import ast
import re

from perflint.rules._parts import elements, made_of
from perflint.rules.evaluation._runs import Run
from perflint.rules.evaluation._scopes import Survey
from perflint.semantics.memo import once_per_key
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, walk
from perflint.semantics.values import Const, Instance, Value

_MODAL = re.compile(r"Dropout|BatchNorm|Transformer|RReLU")
_MODAL_FUNCTION = re.compile(r"torch\.(?:nn\.functional\.)?(?:\w*dropout\w*|rrelu\w*|batch_norm)")
_DROPS_IF_ASKED = re.compile(r"(?:LSTM|GRU|RNN|MultiheadAttention)$")
"""Layers whose dropout is off by default."""
_GRAPHS = "torch_geometric.nn."
"""A library whose layers and models drop and normalise where they are asked to."""
_CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict"})


def mode_matters(survey: Survey, run: Run) -> bool:
    """True if the mode may change the result of a model: not if its class is known to have no such layers.

    For a parameter, the models that the file assigns to the same name elsewhere decide.
    """
    made = _objects(survey.model.value(run.call.func))
    if made:
        return any(_is_changed(survey.model, each) for each in made)
    return _assigned_matter(survey, run.receiver)


@once_per_key
def _assigned_matter(survey: Survey, receiver: str) -> bool:
    values = (survey.model.value(each) for each in survey.assigned(receiver))
    made = [each for value in values for each in _objects(value)]
    return not made or any(_is_changed(survey.model, each) for each in made)


def surely_differs(model: Model, call: ast.Call) -> bool:
    """True if the class of a model that is run is seen to hold a layer that the mode changes."""
    made = _objects(model.value(call.func))
    return bool(made) and all(
        _is_changed(model, each) if each.cls.startswith("torch.nn.") else _holds(model, each.cls, unseen=False)
        for each in made
    )


def _objects(value: Value) -> list[Instance]:
    """The objects of known classes that a value may be."""
    return [each for each in value.members if isinstance(each, Instance) and each.cls != "torch.nn.Module"]


def _is_changed(model: Model, instance: Instance, depth: int = 4) -> bool:
    """True if a module is a layer that the mode changes, or may hold one."""
    if instance.cls == "torch.nn.Module":
        # Some module of an unknown class.
        return True
    if instance.cls.startswith(_GRAPHS):
        asked = None if instance.arguments is None else [name for name, _ in instance.arguments]
        return _is_changed_graph_layer(instance.cls, asked)
    if not instance.cls.startswith("torch.nn."):
        return _holds(model, instance.cls, unseen=True)
    if instance.cls.rpartition(".")[2] in _CONTAINERS:
        if not depth or instance.arguments is None:
            return True
        parts = [part for _, value in instance.arguments for part in elements(value)]
        return any(not isinstance(part, Instance) or _is_changed(model, part, depth - 1) for part in parts)
    if _DROPS_IF_ASKED.search(instance.cls):
        rate = instance.argument("dropout")
        return instance.arguments is None or (rate is not None and rate not in (Const(0), Const(0.0)))
    return _MODAL.search(instance.cls) is not None


def _is_changed_graph_layer(name: str, asked: list[str | None] | list[str] | None) -> bool:
    if asked is None or _MODAL.search(name.rpartition(".")[2]):
        return True
    return not {"dropout", "norm", "batch_norm", None}.isdisjoint(asked)


def _holds(model: Model, cls: str, *, unseen: bool) -> bool:
    """True if a class has layers that the mode changes; `unseen` is the answer for classes that are not seen."""
    made = made_of(model, cls)
    if not made.classes:
        return unseen
    if any(isinstance(node, ast.Attribute) and node.attr == "training" for each in made.classes for node in walk(each)):
        return True
    if any(name.startswith("torch.nn.") and _MODAL.search(name) for name in made.bases):
        return True
    return any(_makes_modal_layer(name, call, unseen) for name, call in made.calls)


def _makes_modal_layer(name: str, call: ast.Call, unseen: bool) -> bool:
    if _MODAL_FUNCTION.fullmatch(name):
        return True
    if not last_name(call)[:1].isupper():
        return False
    asked = [keyword.arg for keyword in call.keywords]
    if name.startswith(_GRAPHS):
        return _is_changed_graph_layer(name, asked)
    if not name.startswith("torch.nn."):
        return unseen
    return not {"dropout", None}.isdisjoint(asked) if _DROPS_IF_ASKED.search(name) else bool(_MODAL.search(name))
