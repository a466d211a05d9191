"""Facts about packages other than torch, and about Python's own: one file for each, read by `files.py`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TypeVar

from perflint.semantics.facts import arrays, distributions, packed_sequence, torch_api
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.facts.libraries import files
from perflint.semantics.facts.libraries.files import LibraryClass
from perflint.semantics.facts.libraries.kinds import ATTRIBUTES, CODE, RESULTS
from perflint.semantics.lattice import union
from perflint.semantics.values import (
    UNKNOWN,
    Const,
    Device,
    Instance,
    Kind,
    Name,
    Scalar,
    Tensor,
    Value,
)

# Names


def public(name: str) -> Name:
    """A name outside the project under the name that the facts use."""
    return Name(files.of(name).aliases.get(name, name))


def returns(name: str) -> str:
    """The kind of a function's result, or "" if it is unknown."""
    library = files.of(name)
    return library.functions.get(name, "") or _below(library.below, name) or ""


_Fact = TypeVar("_Fact")


def _below(facts: Mapping[str, _Fact], name: str) -> _Fact | None:
    """The fact about all names below the nearest of the modules around a name; None if there is none."""
    parent = name if facts else ""
    while "." in parent:
        parent = parent.rpartition(".")[0]
        if parent in facts:
            return facts[parent]
    return None


# Classes


def _class_of(name: str) -> LibraryClass | None:
    library = files.of(name)
    known = library.classes.get(library.aliases.get(name, name))
    is_class = name.rpartition(".")[2][:1].isupper()
    return _below(library.classes_below, name) if known is None and is_class else known


def kind_of(cls: str) -> str:
    """The kind of a class (`kinds.CLASSES`), or ""."""
    known = _class_of(cls)
    return "" if known is None else known.kind


@cache
def bases(name: str) -> tuple[str, ...]:
    """The known bases of a class outside the project, nearest first."""
    facts = torch_api.module(name)
    if facts is not None:
        rest = () if name == "torch.nn.Module" else ("torch.nn.Module",)
        return (*facts.bases, *rest) if "torch.nn.Module" not in facts.bases else facts.bases
    known = _class_of(name)
    base = "" if known is None else known.base or known.like
    if base:
        return (base, *bases(base))
    if torch_api.is_optimizer(name) and name != "torch.optim.Optimizer":
        return ("torch.optim.Optimizer",)
    return ()


def attribute(cls: str, value: Instance, name: str) -> Value | None:
    """An attribute of an object of a class outside the project; None if the class does not have it."""
    known = _class_of(cls)
    if known is not None:
        if known.kind == "namespace":
            return value.argument(name) or UNKNOWN
        if name in known.attributes:
            return ATTRIBUTES[known.attributes[name]]
        if name in known.methods:
            return Name(f"{cls}.{name}", value)
    if cls == "torch.optim.Optimizer":
        return Name(f"torch.optim.Optimizer.{name}", value)
    if torch_api.is_module(cls):
        return None if cls == "torch.nn.Module" else _of_layer(cls, value, name)
    if cls.startswith("torch.distributions."):
        return distributions.attribute(cls, value, name)
    return packed_sequence.attribute(value, name) if cls == packed_sequence.CLASS else None


def _of_layer(cls: str, value: Instance, name: str) -> Value | None:
    """An attribute of a layer of torch: a parameter, a buffer or an argument of its constructor."""
    if name in ("weight", "bias", "in_proj_weight", "in_proj_bias"):
        return Tensor(Device.MODEL, Kind.FLOAT, leaf="parameter")
    if name in ("running_mean", "running_var"):
        return Tensor(Device.MODEL, Kind.FLOAT, 1, leaf="buffer")
    given = value.argument(name)
    if given is not None:
        return union(map(_as_buffer, given.members))
    if name in (torch_api.parameters(cls) or ()):
        default = torch_api.defaults(cls).get(name, ...)
        return Const(default) if isinstance(default, (int, float, bool, str)) else UNKNOWN
    return None


def _as_buffer(given: Value) -> Value:
    """An argument as a layer keeps it: a tensor moves with the layer, such as the `pos_weight` of a loss."""
    if not isinstance(given, Tensor) or given.device is Device.CUDA:
        return given
    return given.with_(device=Device.MODEL, place="", leaf="buffer")


def indexed(value: Instance) -> Value:
    """The result of indexing an object of a class outside the project."""
    if value.cls == "torch.nn.ParameterList" or value.cls == "torch.nn.ParameterDict":
        return Tensor(Device.MODEL, Kind.FLOAT, leaf="parameter")
    return UNKNOWN


# Calls


def result(name: str, arguments: Arguments) -> Value | None:
    """The result of a function outside the project; None if it is not in the facts."""
    library = files.of(name)
    if name in library.numbers:
        return _number_or_array(library.numbers[name], arguments)
    if name in library.arrays:
        return arrays.made(library.arrays[name], arguments)
    return _of_kind(returns(name), arguments)


def method(name: str, arguments: Arguments) -> Value | None:
    """The result of a method of an object of a class outside the project; None if it is not in the facts."""
    cls, _, last = name.rpartition(".")
    known = _class_of(cls)
    return None if known is None else _of_kind(known.methods.get(last, ""), arguments)


def _of_kind(kind: str, arguments: Arguments) -> Value | None:
    if kind in ("", CODE):
        return None
    made = RESULTS.get(kind)
    return Instance(kind) if made is None else made(arguments)


def _number_or_array(rule: str, arguments: Arguments) -> Value:
    """The result of a function that returns a number, unless an argument makes it return an array."""
    argument, position, holds = rule.split()
    if arguments.unpacked or arguments.get(argument, int(position)) is not None:
        dimensions = f"size {position}" if argument == "size" else _DIMENSIONS[argument]
        return arrays.made(f"{dimensions} {holds}", arguments)
    return Scalar("int" if holds == "int" else "float")


_DIMENSIONS = {"axis": "reduced", "each": "each"}
