"""Objects whose `load_state_dict` copies the loaded tensors to the devices of the object's own tensors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from perflint.rules.model._flow import attributes
from perflint.semantics.model import Model
from perflint.semantics.values import Const, DeviceValue, Dtype, Instance, Mapping, Scalar, Sequence, Tensor, Value

_OTHERWISE = re.compile(
    r"\bdef +load_state_dict\b|_load_from_state_dict|load_state_dict_(?:pre|post)_?hook|set_extra_state"
    r"|\.load_state_dict *=[^=]|set_swap_module_params_on_conversion|__setstate__|__setattr__"
)
"""Ways for a class or a file to do something else with loaded tensors."""
_KEPT = ("torch.optim.", "torch.amp.", "torch.cuda.amp.")
_DEEPEST = 6


def copies_state(model: Model, value: Value) -> bool:
    """True if something is a module, an optimizer or a scaler whose class, and those of its parts, are all known.

    These copy; a class of the file may do otherwise, and so may a class that is not in sight.
    """
    if model.matches(_OTHERWISE):
        return False
    members = value.members
    return bool(members) and all(isinstance(each, Instance) and _copies(model, each, _DEEPEST) for each in members)


def _copies(model: Model, made: Instance, depth: int) -> bool:
    # Without a constructor call in sight, an annotation says the class, and a derived one may be meant.
    if made.arguments is None or depth == 0:
        return False
    if made.cls.startswith(_KEPT):
        return not any(map(_holds_tensor, _options(made.arguments)))
    if not model.is_module(made) or not all(_is_harmless(model, given, depth) for _, given in made.arguments):
        return False
    if made.cls.startswith("torch.nn."):
        return True
    home, _, name = made.cls.rpartition(".")
    info = model.module.klass(name) if home == model.module.name else None
    return info is not None and _is_made_of_known(model, info.node, depth)


def _options(arguments: Iterable[tuple[str, Value]]) -> Iterator[Value]:
    """The options of an optimizer, which keeps them as they are loaded, also those of its groups of parameters."""
    for name, given in arguments:
        if name != "params":
            yield given
        elif isinstance(given, Sequence):
            groups = (each for each in given.items or (given.element,) if isinstance(each, Mapping))
            yield from (value for group in groups for key, value in group.items if key != "params")


def _holds_tensor(value: Value) -> bool:
    """True for a tensor, and for a list or tuple with one."""
    if isinstance(value, Sequence):
        return any(map(_holds_tensor, value.items if value.items is not None else (value.element,)))
    return value.tensor is not None


def _is_made_of_known(model: Model, definition: ast.ClassDef, depth: int) -> bool:
    """True if a class is derived from `torch.nn.Module` itself, and all that its methods assign to `self` is known."""
    bases = [model.value(base) for base in definition.bases]
    if definition.keywords or len(bases) != 1 or getattr(bases[0], "name", "") != "torch.nn.Module":
        return False
    return all(
        value is not None and _is_harmless(model, model.value(value), depth - 1)
        for attribute in attributes(model, definition).values()
        for value in attribute.assigned
    )


def _is_harmless(model: Model, value: Value, depth: int) -> bool:
    """True if an attribute or argument holds no object that may load in a way of its own."""
    return bool(value.members) and all(_is_harmless_member(model, each, depth) for each in value.members)


def _is_harmless_member(model: Model, value: Value, depth: int) -> bool:
    if isinstance(value, (Const, Scalar, Tensor, DeviceValue, Dtype)):
        return True
    if isinstance(value, Sequence):
        items = value.items if value.items is not None else (value.element,)
        return depth > 0 and all(_is_harmless(model, each, depth - 1) for each in items)
    if isinstance(value, Mapping):
        items = (*(each for _, each in value.items), *([value.element] if not value.items else []))
        return depth > 0 and all(_is_harmless(model, each, depth - 1) for each in items)
    return isinstance(value, Instance) and _copies(model, value, depth - 1)
