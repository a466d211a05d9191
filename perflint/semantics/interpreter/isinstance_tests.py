"""The result of `isinstance` for a value, if it is known without running the code."""

from __future__ import annotations

from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.interpreter.lineage import is_module, lineage
from perflint.semantics.values import (
    Array,
    Class,
    Const,
    Evidence,
    Instance,
    Mapping,
    Name,
    Scalar,
    Sequence,
    Tensor,
    Value,
    scalar_type,
)

_PLAIN = frozenset("int float bool str bytes complex list tuple set dict".split())
_UNRELATED = frozenset({f"builtins.{name}" for name in _PLAIN} | {"torch.Tensor", "torch.nn.Module", "numpy.ndarray"})
"""Types of which no object is of two; but a `bool` is an `int`."""


def is_instance(frame: Frame, value: Value, types: Value) -> bool | None:
    """True if a value is of one of some types, None if that is unknown."""
    found = {_is_one_of(frame, member, types) for member in value.members}
    return found.pop() if len(found) == 1 else None


def _is_one_of(frame: Frame, value: Value, types: Value) -> bool | None:
    if not isinstance(types, Sequence):
        return _is_a(frame, value, types)
    found = {None} if types.items is None else {_is_one_of(frame, value, one) for one in types.items}
    return True if True in found else None if None in found else False


def _is_a(frame: Frame, value: Value, type_: Value) -> bool | None:
    if not isinstance(type_, (Name, Class)):
        return None
    handler = next((handler for kind, handler in _KINDS if isinstance(value, kind)), None)
    return None if handler is None else handler(frame, value, type_.name)


def _tensor(frame: Frame, value: Value, name: str) -> bool | None:
    assert isinstance(value, Tensor)
    if value.evidence < Evidence.ANNOTATION:
        return None
    if name == "torch.nn.Parameter" and value.leaf == "parameter":
        return True
    return _unrelated(name, "torch.Tensor")


def _scalar(frame: Frame, value: Value, name: str) -> bool | None:
    kind = scalar_type(value)
    return True if (kind, name) == ("bool", "builtins.int") else _unrelated(name, f"builtins.{kind}")


def _sequence(frame: Frame, value: Value, name: str) -> bool | None:
    assert isinstance(value, Sequence)
    kind = "tuple" if value.type == "size" else value.type
    if kind not in _PLAIN:
        return None
    if name in ("builtins.list", "builtins.tuple", "builtins.set") and value.items is None:
        # An annotation as a sequence allows any of these types.
        return None
    return _unrelated(name, f"builtins.{kind}")


def _mapping(frame: Frame, value: Value, name: str) -> bool | None:
    return _unrelated(name, "builtins.dict")


def _array(frame: Frame, value: Value, name: str) -> bool | None:
    assert isinstance(value, Array)
    if value.rank == 0:
        # NumPy's numbers are some of Python's as well.
        return None
    return False if name in _UNRELATED and name != "numpy.ndarray" else None


def _object(frame: Frame, value: Value, name: str) -> bool | None:
    assert isinstance(value, Instance)
    if name in lineage(frame, value.cls):
        return True
    return _unrelated(name, "torch.nn.Module") if is_module(frame, value.cls) else None


def _unrelated(name: str, own: str) -> bool | None:
    """True if a type is a value's own, None if it may be a base or an abstract class of it."""
    return name == own if name in _UNRELATED else None


_KINDS = (
    (Tensor, _tensor),
    (Const, _scalar),
    (Scalar, _scalar),
    (Sequence, _sequence),
    (Mapping, _mapping),
    (Array, _array),
    (Instance, _object),
)
