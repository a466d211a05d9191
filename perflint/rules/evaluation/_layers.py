"""Decides if training and evaluation mode differ for a model: if it holds dropout or batch normalisation."""

from __future__ import annotations

import ast
import re

from perflint.rules.evaluation._runs import Run
from perflint.rules.evaluation._scopes import Survey, dotted
from perflint.semantics.memo import once
from perflint.semantics.module import Module
from perflint.semantics.structure import last_name, walk
from perflint.semantics.values import Const, Instance, Sequence, Value

_MODAL = re.compile(r"Dropout|BatchNorm|Transformer|RReLU")
_MODAL_FUNCTION = re.compile(r"torch\.(?:nn\.functional\.)?(?:\w*dropout\w*|rrelu\w*|batch_norm)")
_DROPS_IF_ASKED = re.compile(r"(?:LSTM|GRU|RNN|MultiheadAttention)$")
"""Layers whose dropout is off by default."""
_GRAPHS = "torch_geometric.nn."
"""A library whose layers and models drop and normalise where they are asked to."""
_CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict"})


class Layers:
    """The layers of a file's models that behave differently in training."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._by_receiver: dict[str, bool] = {}
        self._by_class: dict[tuple[str, bool], bool] = {}

    def mode_matters(self, run: Run) -> bool:
        """True if the mode may change the result of a model: not if its class is known to have no such layers.

        For a parameter, the models that the file assigns to the same name elsewhere decide.
        """
        made = _objects(self._survey.model.value(run.call.func))
        if made:
            return any(map(self._is_changed, made))
        known = self._by_receiver.get(run.receiver)
        if known is None:
            values = self._survey.assigned.get(run.receiver, ())
            made = [each for value in values for each in _objects(self._survey.model.value(value))]
            known = self._by_receiver[run.receiver] = not made or any(map(self._is_changed, made))
        return known

    def surely_differs(self, run: Run) -> bool:
        """True if the class of a model that is run is seen to hold a layer that the mode changes."""
        made = _objects(self._survey.model.value(run.call.func))
        return bool(made) and all(map(self._surely_changes, made))

    def _surely_changes(self, instance: Instance) -> bool:
        if instance.cls.startswith("torch.nn."):
            return self._is_changed(instance)
        return self._holds(instance.cls, unseen=False)

    def _is_changed(self, instance: Instance, depth: int = 4) -> bool:
        """True if a module is a layer that the mode changes, or may hold one."""
        if instance.cls == "torch.nn.Module":
            # Some module of an unknown class.
            return True
        if instance.cls.startswith(_GRAPHS):
            asked = None if instance.arguments is None else [name for name, _ in instance.arguments]
            return _is_changed_graph_layer(instance.cls, asked)
        if not instance.cls.startswith("torch.nn."):
            return self._holds(instance.cls, unseen=True)
        if instance.cls.rpartition(".")[2] in _CONTAINERS:
            if not depth or instance.arguments is None:
                return True
            parts = [part for _, value in instance.arguments for part in parts_of(value)]
            return any(not isinstance(part, Instance) or self._is_changed(part, depth - 1) for part in parts)
        if _DROPS_IF_ASKED.search(instance.cls):
            rate = instance.argument("dropout")
            return instance.arguments is None or (rate is not None and rate not in (Const(0), Const(0.0)))
        return _MODAL.search(instance.cls) is not None

    def _holds(self, cls: str, unseen: bool) -> bool:
        """True if a class of the project holds such layers; `unseen` stands for classes and parts that are not seen."""
        known = self._by_class.get((cls, unseen))
        if known is None:
            found = _class(self._survey, cls)
            known = unseen if found is None else _holds_modal_layer(*found, unseen=unseen)
            self._by_class[cls, unseen] = known
        return known


@once
def layers(survey: Survey) -> Layers:
    """The layers of the models of a file."""
    return Layers(survey)


def _objects(value: Value) -> list[Instance]:
    """The objects of known classes that a value may be."""
    return [each for each in value.members if isinstance(each, Instance) and each.cls != "torch.nn.Module"]


def _is_changed_graph_layer(name: str, asked: list[str | None] | list[str] | None) -> bool:
    if asked is None or _MODAL.search(name.rpartition(".")[2]):
        return True
    return not {"dropout", "norm", "batch_norm", None}.isdisjoint(asked)


def parts_of(value: Value) -> tuple[Value, ...]:
    """The elements of a container: modules, or a list of them."""
    if isinstance(value, Sequence):
        return value.items if value.items is not None else (value.element,)
    return value.members


def _class(file: Survey, name: str) -> tuple[Module, ast.ClassDef] | None:
    """A class of the project by its full name, and the module that it is in."""
    module, _, qualname = name.rpartition(".")
    home = file.model.view.loaded(module)
    info = home.klass(qualname) if home is not None else None
    return None if home is None or info is None else (home, info.node)


def _holds_modal_layer(home: Module, node: ast.ClassDef, depth: int = 4, unseen: bool = True) -> bool:
    """True if a module class has layers that the mode changes; `unseen` is the answer for parts from other files."""
    for inner in walk(node):
        if isinstance(inner, ast.Attribute) and inner.attr == "training":
            return True
        if isinstance(inner, ast.Call):
            name = dotted(inner.func)
            full = home.full_name(name)
            if _MODAL_FUNCTION.fullmatch(full):
                return True
            if not last_name(inner)[:1].isupper():
                continue
            if full.startswith("torch.nn."):
                if _DROPS_IF_ASKED.search(full):
                    if any(keyword.arg in ("dropout", None) for keyword in inner.keywords):
                        return True
                elif _MODAL.search(full):
                    return True
                continue
            if full.startswith(_GRAPHS):
                if _is_changed_graph_layer(full, [keyword.arg for keyword in inner.keywords]):
                    return True
                continue
            part = home.klass(name) if name and depth else None
            if unseen if part is None else _holds_modal_layer(home, part.node, depth - 1, unseen):
                return True
    return False
