"""Checkpoints that are loaded onto the device and handed to optimizers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from perflint.findings import Confidence, weakest
from perflint.frozen import dataclass
from perflint.rules._memory.flows import made
from perflint.rules._methods import calls_named
from perflint.rules._visible import is_private
from perflint.rules.model._flow import attributes
from perflint.rules.placement import place_confidence
from perflint.semantics.binders import How
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite, FileSite
from perflint.semantics.structure import path_of
from perflint.semantics.values import (
    NONE,
    Const,
    Device,
    DeviceValue,
    Dtype,
    Instance,
    Mapping,
    Scalar,
    Sequence,
    Tensor,
    Value,
)

_OTHERWISE = re.compile(
    r"\bdef +load_state_dict\b|_load_from_state_dict|load_state_dict_(?:pre|post)_?hook|set_extra_state"
    r"|\.load_state_dict *=[^=]|set_swap_module_params_on_conversion|__setstate__|__setattr__"
)
"""Ways for a class or a file to do something else with loaded tensors."""
_KEPT = ("torch.optim.", "torch.amp.", "torch.cuda.amp.")
_DEEPEST = 6
COUNTING = frozenset(f"torch.optim.{name}" for name in ("Adam", "AdamW", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam"))
"""Optimizers that read their step counters on the CPU."""
_OF_OPTIMIZERS = (frozenset({"param_groups"}), frozenset({"add_param_group"}), frozenset({"zero_grad", "step"}))
"""Attributes that only an optimizer has, all of a set: a module has `zero_grad`, and a scheduler has `step`."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A checkpoint whose tensors go to the device, and where an optimizer gets part of it."""

    load: ast.Call
    given_to: CallSite
    name: str | None
    """The name that the checkpoint is bound to; empty if it is passed on at once, None if it is in another object."""
    place: ast.expr
    """The value of `map_location`."""
    confidence: Confidence


def loaded_onto_device(site: FileSite) -> Iterator[Loaded]:
    """The checkpoints of a file that `torch.load` puts on the device, by the optimizer that gets them."""
    for call in calls_named(site, "load_state_dict"):
        assert isinstance(call.node.func, ast.Attribute)
        given = call.argument("state_dict", 0)
        sure = optimizer_confidence(site.model, call.node.func.value)
        if given is None or sure is None:
            continue
        holder = _holder(site.model, given)
        load = made(site.model, holder)
        if isinstance(load, ast.Call) and site.model.target(load) == "torch.load":
            place = _place(site.model, load)
            if place is not None:
                name = holder.id if isinstance(holder, ast.Name) else "" if holder is load else None
                yield Loaded(load, call, name, place[0], weakest(sure, place[1]))


def optimizer_confidence(model: Model, node: ast.expr) -> Confidence | None:
    """How sure it is that something is an optimizer that reads its step counters; None if it is not."""
    for member in model.value(node).members:
        if isinstance(member, Instance):
            return _counts(model, member)
    path = path_of(node)
    if not path:
        return None
    used = {each.attr for each in model.nodes(ast.Attribute) if path_of(each.value) == path}
    return Confidence.MEDIUM if any(words <= used for words in _OF_OPTIMIZERS) else None


def _counts(model: Model, made: Instance) -> Confidence | None:
    if made.cls == "torch.optim.Optimizer" or (made.cls in COUNTING and made.arguments is None):
        return Confidence.MEDIUM
    if made.cls not in COUNTING:
        return None
    chosen = [made.argument(name) for name in ("fused", "capturable")]
    return Confidence.HIGH if all(value in (None, NONE, Const(False)) for value in chosen) else None


def _holder(model: Model, node: ast.expr) -> ast.expr:
    """The checkpoint that an expression belongs to, as the code names it last: a name, a part of an object, a call."""
    while True:
        source = made(model, node)
        if isinstance(source, ast.Subscript):
            node = source.value
        elif (
            isinstance(source, ast.Call)
            and isinstance(source.func, ast.Attribute)
            and source.func.attr in ("get", "pop")
        ):
            node = source.func.value
        else:
            return node


def _place(model: Model, load: ast.Call) -> tuple[ast.expr, Confidence] | None:
    """The argument `map_location`, if it is the GPU, with its confidence."""
    found = model.call(load).argument("map_location", 1)
    if found is None or isinstance(found, (ast.Lambda, ast.Dict)):
        return None
    value = model.value(found)
    if any(_is_elsewhere(member) for member in value.members):
        return None
    sure = place_confidence(value)
    return None if sure is None else (found, sure)


def _is_elsewhere(value: Value) -> bool:
    """None leaves tensors where they were saved, as a dict of devices mostly does."""
    if isinstance(value, Mapping) or value == NONE or getattr(value, "device", None) is Device.CPU:
        return True
    return isinstance(value, Scalar) and value.type != "str"


def feeds_only_state(model: Model, found: Loaded) -> bool:
    """True if modules and optimizers copy all parts of a checkpoint that are read to their own devices."""
    if found.name is None:
        return False
    if not found.name:
        assert isinstance(found.given_to.node.func, ast.Attribute)
        return _is_copied(model, found.given_to.node)
    uses = [each for each in model.nodes(ast.Name) if each.id == found.name]
    uses = [each for each in uses if model.function(each) is model.function(found.load)]
    return all(is_private(model, use) and (not isinstance(use.ctx, ast.Load) or _is_state(model, use)) for use in uses)


def keeps_tensor(model: Model, found: Loaded) -> bool:
    """True if something keeps a checkpoint as a whole, or a part of it under whose key the file saves a tensor."""
    if found.name is None:
        return True
    uses = [each for each in model.nodes(ast.Name) if each.id == found.name]
    uses = [each for each in uses if model.function(each) is model.function(found.load)]
    read = [use for use in uses if isinstance(use.ctx, ast.Load) and not _is_state(model, use)]
    keys = {_key(model, use) for use in read}
    return any(_is_kept(model, use) for use in read) or not keys.isdisjoint(_saved_tensors(model))


def _is_kept(model: Model, use: ast.Name) -> bool:
    """True if a name is returned, assigned, or put into a list or dict, so that others have its value."""
    outer = model.parent(use)
    while isinstance(outer, _DISPLAYS):
        outer = model.parent(outer)
    return isinstance(outer, (ast.Return, ast.Yield, ast.Assign, ast.AnnAssign))


_DISPLAYS = (ast.Tuple, ast.List, ast.Dict)


def is_for_callers(model: Model, found: Loaded) -> bool:
    """True if the place is a parameter that nothing else reads: it would have no effect any more."""
    place = found.place
    if not isinstance(place, ast.Name):
        return False
    variable = model.symbols.variable(place)
    return len(variable.uses) == 1 and any(binding.how is How.PARAMETER for binding in variable.bindings)


def _key(model: Model, use: ast.Name) -> object:
    """The key of the part that is read of a checkpoint; None if it is not written as a text."""
    parent = model.parent(use)
    key = parent.slice if isinstance(parent, ast.Subscript) and parent.value is use else None
    if isinstance(parent, ast.Attribute) and parent.attr in ("get", "pop"):
        call = model.parent(parent)
        key = call.args[0] if isinstance(call, ast.Call) and call.args else None
    return key.value if isinstance(key, ast.Constant) else None


@once
def _saved_tensors(model: Model) -> frozenset[object]:
    """The texts that a file has as keys of tensors in dict displays."""
    pairs = ((key, value) for each in model.nodes(ast.Dict) for key, value in zip(each.keys, each.values, strict=True))
    named = ((key.value, value) for key, value in pairs if isinstance(key, ast.Constant) and type(key.value) is str)
    return frozenset(key for key, value in named if model.value(value).tensor is not None)


def _is_state(model: Model, use: ast.Name) -> bool:
    node: ast.AST = use
    parent = model.parent(node)
    while isinstance(parent, ast.Subscript) and parent.value is node:
        node, parent = parent, model.parent(parent)
    return node is not use and isinstance(parent, ast.Call) and parent.args[:1] == [node] and _is_copied(model, parent)


def _is_copied(model: Model, call: ast.Call) -> bool:
    """True if a call is `load_state_dict`, without `assign`, of an object that copies the state to its own device."""
    owner = call.func
    if not isinstance(owner, ast.Attribute) or owner.attr != "load_state_dict":
        return False
    # With `assign`, the third argument for a module, the loaded tensors replace those of the module.
    if len(call.args) > 2 or any(isinstance(each, ast.Starred) for each in call.args):
        return False
    if any(keyword.arg not in ("state_dict", "strict") for keyword in call.keywords):
        return False
    return _copies_state(model, model.value(owner.value))


def _copies_state(model: Model, value: Value) -> bool:
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
