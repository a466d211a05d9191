"""A site as it would be if all tensors were on the device: a graph breaks wherever they are."""

from __future__ import annotations

import ast
from typing import Any, TypeVar

from perflint.frozen import replace
from perflint.semantics.lattice import union
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite, Site
from perflint.semantics.values import Device, Mapping, Sequence, Tensor, Value

AnySite = TypeVar("AnySite", bound=Site)


class _OnDevice:
    """A model whose tensors are all on the device."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def value(self, node: ast.expr) -> Value:
        """The value of an expression."""
        return on_device(self._model.value(node))


def on_device(value: Value) -> Value:
    """A value with the tensors that it is, or holds directly, on the device."""
    if isinstance(value, Tensor):
        return value if value.device is Device.META else value.with_(device=Device.CUDA)
    if isinstance(value, Sequence):
        items = None if value.items is None else tuple(map(on_device, value.items))
        return Sequence(value.type, on_device(value.element), items)
    if isinstance(value, Mapping):
        return Mapping(on_device(value.element), tuple([(name, on_device(held)) for name, held in value.items]))
    return union(map(on_device, value.members)) if len(value.members) > 1 else value


def device_blind(site: AnySite) -> AnySite:
    """The site, seen so that the rules of synchronisation tell where a tensor is read, wherever it is."""
    model: Any = _OnDevice(site.model)
    if isinstance(site, CallSite):
        receiver = None if site.receiver is None else on_device(site.receiver)
        return replace(site, model=model, receiver=receiver)
    return replace(site, model=model)
