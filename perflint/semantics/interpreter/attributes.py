"""Attributes, by the kind of value that is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perflint.frozen import replace
from perflint.semantics.facts import arrays, by_use, containers, named, tensors, torch_api
from perflint.semantics.facts.conventions import holds_outputs, is_device, is_output
from perflint.semantics.interpreter import autograd
from perflint.semantics.interpreter.frame import Frame, parts
from perflint.semantics.interpreter.functions import parameter_device
from perflint.semantics.interpreter.lineage import facts_of, is_enumeration, is_module, is_tensor_class, lineage
from perflint.semantics.interpreter.members import below, is_member, lacks, member, values_of
from perflint.semantics.interpreter.moves import leaves
from perflint.semantics.interpreter.resolve import resolve
from perflint.semantics.interpreter.self_attributes import set_by_name
from perflint.semantics.lattice import union
from perflint.semantics.values import (
    INT,
    NEVER,
    STR,
    UNKNOWN,
    Array,
    Class,
    Const,
    Device,
    DeviceValue,
    Dtype,
    Evidence,
    Function,
    Instance,
    Kind,
    Mapping,
    Name,
    Partial,
    Scalar,
    Sequence,
    Super,
    Tensor,
    Union,
    Unknown,
    Value,
    scalar_type,
)


def attribute(frame: Frame, value: Value, name: str) -> Value:
    """The value of `value.name`."""
    if value is NEVER:
        return NEVER
    handler = _ATTRIBUTES.get(type(value))
    return UNKNOWN if handler is None else handler(frame, value, name)


def _of_tensor(frame: Frame, value: Tensor, name: str) -> Value:
    return tensors.attribute(value, name)


def _of_unknown(frame: Frame, value: Unknown, name: str) -> Value:
    if name in torch_api.tensor_only_methods() or (value.moved and by_use.is_computed(name)):
        # What is moved to a device and computed with is a tensor, as a module is not.
        evidence = Evidence.CONVENTION if value.moved else Evidence.USE
        return tensors.attribute(Tensor(value.near, evidence=evidence), name)
    if value.moved and by_use.is_of_module(name):
        return attribute(frame, Instance("torch.nn.Module"), name)
    if name == "dtype":
        return Dtype()
    if name == "grad" and "torch" in frame.module.packages:
        # Of a parameter: little else has a gradient.
        return Tensor(value.near, evidence=Evidence.USE)
    computed = Tensor(value.near, evidence=Evidence.CONVENTION)
    if is_output(name):
        return computed
    if holds_outputs(name):
        return Sequence("tuple", computed)
    near = Unknown(Device.CALLER) if name == "cuda" or value.moved else value
    return near if name == "cuda" else named.by_name(name, near)


def _of_name(frame: Frame, value: Name, name: str) -> Value:
    if value.receiver is not None or value.name.count(".") > _LONGEST_NAME:
        return UNKNOWN
    if value.name == "torch.Tensor" and name not in torch_api.tensor_methods():
        # Its properties are read from tensors, and it holds no classes.
        return UNKNOWN
    found = resolve(frame, frame.module, Name(f"{value.name}.{name}"))
    if isinstance(found, Name) and found.receiver is None and is_device(name) and not found.name.startswith("torch."):
        # A package, or an object that it exports, says where its tensors are: `settings.device`.
        return DeviceValue(Device.CALLER)
    return found


_LONGEST_NAME = 16
"""Attributes of attributes of a module that are looked up."""


def _of_class(frame: Frame, value: Class, name: str) -> Value:
    found = member(frame, Instance(value.name), name, bind=False)
    if is_member(frame, value.name, name):
        return Instance(value.name)
    if found is None and name == "apply" and autograd.is_function(frame, value.name):
        # It passes `forward` a context first.
        return Partial(_of_class(frame, value, "forward"), (UNKNOWN,))
    return UNKNOWN if found is None else found


def _of_function(frame: Frame, value: Function, name: str) -> Value:
    return Const(value.qualname.rpartition(".")[2]) if name == "__name__" else UNKNOWN


def _of_super(frame: Frame, value: Super, name: str) -> Value:
    receiver = value.receiver
    if not isinstance(receiver, Instance):
        return UNKNOWN
    order = lineage(frame, receiver.cls)
    after = order[order.index(value.owner) + 1 :] if value.owner in order else order[1:]
    found = member(frame, receiver, name, order=after)
    outside = next((cls for cls in after if facts_of(frame, cls) is None), None)
    if found is None and outside is not None:
        if is_tensor_class(frame, outside):
            return tensors.attribute(Tensor(Device.CALLER), name)
        return Name(f"{outside}.{name}", receiver)
    return UNKNOWN if found is None else found


def _of_instance(frame: Frame, value: Instance, name: str) -> Value:
    if name == "__class__":
        return Class(value.cls)
    found = autograd.attribute(frame, value, name) if value.cls == autograd.CONTEXT else member(frame, value, name)
    if found is not None:
        if is_member(frame, value.cls, name):
            return Instance(value.cls)
        placed = named.on_cpu(found) if leaves(frame, value.cls, name) else named.placed(name, found)
        return _of_record(frame, value, as_seen(frame, placed))
    if name in ("value", "name") and is_enumeration(frame, value.cls):
        return STR if name == "name" else values_of(frame, value.cls)
    if name in ("_replace", "_asdict") and "typing.NamedTuple" in lineage(frame, value.cls):
        return Name(f"typing.NamedTuple.{name}", value)
    if value.cls == "torch.nn.ModuleDict":
        held = dict(containers.as_mapping(value).items)
        return held[name] if name in held else Name(f"{value.cls}.{name}", value)
    if name == "device" and is_module(frame, value.cls):
        return DeviceValue(Device.MODEL)
    if name == "module" and is_module(frame, value.cls):
        # In the model, a parallel wrapper of a module is the module itself, which takes no inputs along.
        return replace(value, takes_inputs_along=False)
    if value.cls == "collections.namedtuple" and value.argument(name) is not None:
        return value.argument(name) or UNKNOWN
    if facts_of(frame, value.cls) is not None:
        given = set_by_name(frame, value, name)
        if given is not None:
            return as_seen(frame, given)
        given = below(frame, value, name)
        if given is not None:
            return as_seen(frame, given)
        if is_tensor_class(frame, value.cls):
            return tensors.attribute(Tensor(Device.CALLER, evidence=Evidence.ANNOTATION), name)
        return named.by_name(name)
    return DeviceValue(Device.CALLER) if name == "device" else Name(f"{value.cls}.{name}", value)


def _of_record(frame: Frame, record: Instance, value: Value) -> Value:
    """A field of an object that `forward` gets or computes: declared tensors are on the device of the module."""
    if record == frame.receiver or frame.function is None or not any(map(_is_declared, value.members)):
        return value
    if parameter_device(frame, frame.function) is not Device.MODEL:
        return value
    return union(
        member.with_(device=Device.MODEL) if isinstance(member, Tensor) and _is_declared(member) else member
        for member in value.members
    )


def _is_declared(value: Value) -> bool:
    return isinstance(value, Tensor) and value.device is Device.CALLER and value.evidence is Evidence.ANNOTATION


def as_seen(frame: Frame, value: Value) -> Value:
    """An attribute as the code sees it: in a constructor, parameters and buffers are still on the CPU."""
    if not frame.constructs:
        return value
    if isinstance(value, Union):
        return union(as_seen(frame, inner) for inner in value.members)
    if isinstance(value, Tensor) and value.device is Device.MODEL:
        return value.with_(device=Device.CPU)
    return DeviceValue(Device.CPU) if value == DeviceValue(Device.MODEL) else value


def _of_sequence(frame: Frame, value: Sequence, name: str) -> Value:
    if value.type == "batch" and isinstance(value.element, Tensor):
        if name in ("keys", "items", "values", "get", "pop", "copy", "update"):
            return Name(f"builtins.dict.{name}", Mapping(value.element))
        if name in ("to", "cuda", "cpu"):
            return Name(f"torch.Tensor.{name}", value)
        if name in _COUNTS_OF_GRAPHS:
            return INT
        known = tensors.attribute(value.element, name)
        return value.element if isinstance(known, Unknown) else known
    if value.type == "named":
        return value.element
    if value.type == "tuple" and value.items and not hasattr(tuple, name):
        return _field_of(value, name)
    if value.type in _TYPES and not hasattr(_TYPES[value.type], name):
        return Name("builtins.size.numel", value) if name == "numel" else NEVER
    return Name(f"builtins.{value.type}.{name}", value)


_COUNTS_OF_GRAPHS = frozenset("num_graphs num_nodes num_edges num_features num_node_features num_edge_features".split())
"""Attributes of torch_geometric's batches that are integers."""


def _field_of(value: Sequence, name: str) -> Value:
    """A field of the named tuples that torch returns: `x.max(1).values`, `torch.linalg.svd(x).S`."""
    assert value.items is not None
    if not all(isinstance(item, Tensor) for item in value.items):
        return NEVER
    if isinstance(value.items[0], Tensor):
        # Only a tensor has this attribute, not a tuple: the annotation `tuple[torch.FloatTensor]` is wrong.
        known = tensors.attribute(value.items[0], name)
        if not isinstance(known, Unknown) and (len(value.items) == 1 or not isinstance(known, Name)):
            return known
    position = {"values": 0, "indices": 1}.get(name, len(value.items))
    return value.items[position] if position < len(value.items) else union(value.items)


_TYPES: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "size": tuple, "range": range, "str": str,
                           "int": int, "float": float, "bool": bool, "bytes": bytes, "complex": complex}  # fmt: skip


def _of_mapping(frame: Frame, value: Mapping, name: str) -> Value:
    # A config that is annotated as a dict is often an object that has attributes, too.
    return Name(f"builtins.dict.{name}", value) if hasattr(dict, name) else UNKNOWN


def _of_scalar(frame: Frame, value: Value, name: str) -> Value:
    kind = scalar_type(value)
    if kind == "None" or (kind in _TYPES and not hasattr(_TYPES[kind], name)):
        return NEVER
    return Name(f"builtins.{kind}.{name}", value)


def _of_array(frame: Frame, value: Array, name: str) -> Value:
    return arrays.attribute(value, name)


def _of_device(frame: Frame, value: DeviceValue, name: str) -> Value:
    return STR if name == "type" else INT if name == "index" else UNKNOWN


def _of_union(frame: Frame, value: Union, name: str) -> Value:
    known = [inner for inner in value.members if not isinstance(inner, Unknown)]
    if name in torch_api.tensor_only_methods() and any(isinstance(inner, Tensor) for inner in known):
        # The unknown members are used as tensors: they are assumed to be on the device of the known ones.
        return union(attribute(frame, inner, name) for inner in _of_any_form(value, known))
    found = [(inner, attribute(frame, inner, name)) for inner in value.members]
    if any(each.tensor is not None for _, each in found):
        # Code that reads a tensor has no object of a class that lacks it.
        found = [(inner, each) for inner, each in found if not (each.is_unknown and lacks(frame, inner, name))]
    return union(each for _, each in found)


def _of_any_form(value: Union, known: list[Value]) -> list[Value]:
    """The known members of a union; beside something unknown, tensors of any dtype and number of dimensions."""
    if len(known) == len(value.members):
        return known
    return [inner.with_(kind=Kind.UNKNOWN, rank=None) if isinstance(inner, Tensor) else inner for inner in known]


def _of_partial(frame: Frame, value: Partial, name: str) -> Value:
    return value.function if name == "func" else UNKNOWN


_ATTRIBUTES: dict[type[Value], Callable[[Frame, Any, str], Value]] = {
    Tensor: _of_tensor,
    Unknown: _of_unknown,
    Name: _of_name,
    Class: _of_class,
    Function: _of_function,
    Super: _of_super,
    Instance: _of_instance,
    Sequence: _of_sequence,
    Mapping: _of_mapping,
    Const: _of_scalar,
    Scalar: _of_scalar,
    Array: _of_array,
    DeviceValue: _of_device,
    Union: _of_union,
    Partial: _of_partial,
}


parts.attribute = attribute
