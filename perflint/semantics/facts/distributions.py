"""Objects of torch.distributions: where their tensors live, and how often they make the CPU wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from perflint.semantics.facts import torch_api
from perflint.semantics.facts.devices import operand_in_charge
from perflint.semantics.values import (
    INT,
    UNKNOWN,
    Const,
    Device,
    Instance,
    Kind,
    Name,
    Scalar,
    Sequence,
    Tensor,
    Unknown,
    Value,
    scalar_type,
)

_PREFIX = "torch.distributions."
_PARTS = {
    "base_dist": "base_distribution",
    "mixture_distribution": "mixture_distribution",
    "component_distribution": "component_distribution",
}
_COUNTS = frozenset({"Categorical.sample", "Categorical.mode", "Categorical.enumerate_support"})


_MADE_OF_OTHERS = (".TransformedDistribution", ".MixtureSameFamily")


class Waits(NamedTuple):
    """How often the CPU waits: while arguments are validated, and while they are not."""

    validated: int
    unchecked: int


_NEVER_WAITS = Waits(0, 0)


def is_distribution(name: str) -> bool:
    """True if a full name is that of one of torch's distributions."""
    return name.startswith(_PREFIX) and torch_api.parameters(name) is not None


def attribute(cls: str, value: Instance, name: str) -> Value | None:
    """An attribute of a distribution; None if its class does not know it."""
    if not is_distribution(cls):
        return None
    if name in _names("methods"):
        return Name(f"{cls}.{name}", value)
    if name in ("batch_shape", "event_shape"):
        return Sequence("size", INT)
    if name in _PARTS:
        return value.argument(_PARTS[name]) or UNKNOWN
    given = value.argument(name)
    if given is not None and given.tensor is not None:
        return given
    return result(f"{cls}.{name}", value) if name in _names("properties") else None


def result(name: str, value: Value, others: Iterable[Value] = ()) -> Value | None:
    """The result of a property or method of a distribution, by full name; None if unknown.

    It is on the device of the distribution's parameters, or of the method's arguments.
    """
    cls, _, member = name.removeprefix(_PREFIX).rpartition(".")
    if member == "expand":
        return value
    if member not in _names("methods") and member not in _names("properties"):
        return None
    kind = Kind.INT if f"{cls}.{member}" in _COUNTS else Kind.FLOAT
    return tensor([value, *others], kind)


_KNOWN = (Device.CPU, Device.CUDA, Device.CALLER, Device.MODEL)


def tensor(values: Iterable[Value], kind: Kind = Kind.FLOAT) -> Tensor:
    """A tensor that is computed from distributions and tensors."""
    given = [parameter for value in values for parameter in _parameters(value)]
    charge = operand_in_charge(value.tensor for value in given if value.tensor is not None)
    if charge is None and given and all(isinstance(value, (Const, Scalar)) for value in given):
        return Tensor(Device.CPU, kind)
    if charge is None:
        # The parameters of a distribution are tensors, also if unknown code makes them.
        charge = next((Tensor(each.near) for each in given if isinstance(each, Unknown) and each.near in _KNOWN), None)
    if charge is None or charge.device is Device.UNKNOWN:
        # A tensor with a known dtype was computed by the code of the project, on its device.
        charge = charge or Tensor()
        kind = charge.kind
    return Tensor(charge.device, kind, evidence=charge.evidence, place=charge.place)


def _parameters(value: Value, depth: int = 3) -> Iterator[Value]:
    """The parameters of a distribution, through nested distributions; any other value is its own parameter."""
    for member in value.members:
        if not isinstance(member, Instance):
            yield member
        elif depth:
            for name, given in member.arguments or ():
                if name != "validate_args":
                    yield from _parameters(given, depth - 1)


def constructing(value: Instance) -> Waits:
    """How often the constructor of a distribution of device tensors waits."""
    found = _constructors().get(value.cls.removeprefix(_PREFIX), {})
    given = [waits for name, waits in found.items() if value.argument(name) is not None]
    return max(given or found.values(), default=_NEVER_WAITS)


def copied_numbers(value: Instance) -> int:
    """How many Python numbers the constructor copies to where its tensors are, each of which waits."""
    if value.cls.removeprefix(_PREFIX) not in _file()["numbers"]:
        return 0
    given = [argument for name, argument in value.arguments or () if name != "validate_args"]
    numbers = [argument for argument in given if scalar_type(argument) in ("int", "float")]
    return len(numbers) if any(argument.tensor is not None for argument in given) else 0


def using(value: Instance, member: str) -> Waits:
    """How often a method or property of a distribution of device tensors waits."""
    if value.cls == f"{_PREFIX}Independent" or (member == "sample" and value.cls.endswith(_MADE_OF_OTHERS)):
        base = value.argument("component_distribution") or value.argument("base_distribution")
        return using(base, member) if isinstance(base, Instance) else _NEVER_WAITS
    return _members().get(f"{value.cls.removeprefix(_PREFIX)}.{member}", _NEVER_WAITS)


@cache
def constructors() -> frozenset[str]:
    """The full names of the classes whose constructors wait for their checks."""
    return frozenset(
        f"{_PREFIX}{cls}"
        for cls, found in _constructors().items()
        if any(waits.validated > waits.unchecked for waits in found.values())
    )


@cache
def members() -> frozenset[str]:
    """The full names of the methods that wait for their checks, those of a distribution around another included."""
    checked = [name for name, waits in _members().items() if waits.validated > waits.unchecked]
    leaves = {name.rpartition(".")[2] for name in checked}
    return frozenset(f"{_PREFIX}{name}" for name in (*checked, *(f"Independent.{leaf}" for leaf in leaves)))


@cache
def sampling() -> frozenset[str]:
    """The full names of the `sample` methods that also wait if arguments are not validated."""
    waiting = [name for name, waits in _members().items() if name.endswith(".sample") and waits.unchecked]
    return frozenset(f"{_PREFIX}{name}" for name in waiting)


@cache
def _names(kind: str) -> frozenset[str]:
    return frozenset(_file()[kind].split())


@cache
def _constructors() -> dict[str, dict[str, Waits]]:
    """By class, then by the parameter that tells its forms apart, empty if there is one form."""
    found: dict[str, dict[str, Waits]] = {}
    for label, counts in _file()["constructors"].items():
        cls, _, parameter = label.partition(":")
        found.setdefault(cls, {})[parameter] = Waits(*counts)
    return found


@cache
def _members() -> dict[str, Waits]:
    return {name: Waits(*counts) for name, counts in _file()["members"].items()}


def _file() -> Mapping[str, Any]:
    return torch_api.table("distributions")
