"""Objects of dataclasses from JSON that perflint wrote, each value checked against the type of its field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from perflint.findings import Span

_Kind = TypeVar("_Kind")
Readers = Mapping[str, Callable[[str], Any]]
"""Functions by the names of fields that are written as texts; they raise ValueError for other texts."""
NUMBER_LIMITS = {int: 1 << 63, float: 1e100}
"""The sums and products of smaller numbers are finite."""
_SCALARS = (bool, int, float, str)


class Unfit(ValueError):
    """A value that perflint does not write; the message names its place in the document, as in `findings[0].line`."""

    def __init__(self, place: str, reason: str = "is not what perflint writes") -> None:
        super().__init__(f"`{place}` {reason}")


def record(kind: type[_Kind], document: Mapping[str, Any], where: str = "", readers: Readers | None = None) -> _Kind:
    """An object of a dataclass. Keys that are no fields are passed over, as is what a default stands for.

    The numbers of a span are written in the object around it. Raises Unfit.
    """
    values: dict[str, Any] = {}
    plain: type = kind
    for name, hint, is_needed in _schema(plain):
        if hint is Span:
            values[name] = _span(document, where)
        elif name in document:
            values[name] = _value(hint, document[name], f"{where}{name}", readers or {})
        elif is_needed:
            raise Unfit(f"{where}{name}", "is missing; another version of perflint may have written it")
    return kind(**values)


@cache
def _schema(kind: type) -> tuple[tuple[str, Any, bool], ...]:
    """The name, type and need of each field."""
    hints = get_type_hints(kind)
    return tuple((field.name, hints[field.name], field.default is MISSING) for field in fields(kind))


def _span(document: Mapping[str, Any], where: str) -> Span:
    span = record(Span, document, where)
    if min(span.line, span.column, span.end_line, span.end_column) < 1:
        raise Unfit(f"{where}line", "or a column is less than 1")
    return span


def _value(hint: Any, value: Any, where: str, readers: Readers) -> Any:
    """A value of a type: scalars, members of enumerations, tuples and dicts of one type, dataclasses, and None."""
    if get_origin(hint) is UnionType:
        (inner,) = (choice for choice in get_args(hint) if choice is not NoneType)
        return None if value is None else _value(inner, value, where, readers)
    name = where.rpartition(".")[2]
    if name in readers and isinstance(value, str):
        try:
            return readers[name](value)
        except ValueError:
            raise Unfit(where) from None
    if hint is float and type(value) is int:
        value = float(value) if abs(value) < NUMBER_LIMITS[int] else value
    if hint in (bool, str) and type(value) is hint:
        return value
    if hint in (int, float) and type(value) is hint and abs(value) < NUMBER_LIMITS[hint]:
        return value
    if get_origin(hint) is tuple and isinstance(value, list):
        kind = get_args(hint)[0]
        return tuple(_value(kind, item, f"{where}[{index}]", readers) for index, item in enumerate(value))
    if get_origin(hint) is dict and isinstance(value, dict):
        of_key, kind = get_args(hint)
        return {_value(of_key, key, where, {}): _value(kind, each, f"{where}.{key}", {}) for key, each in value.items()}
    if isinstance(hint, type) and issubclass(hint, Enum) and isinstance(value, str):
        if value not in {member.value for member in hint}:
            raise Unfit(where, f"has the unknown value `{value}`")
        return hint(value)
    if isinstance(hint, type) and hint not in _SCALARS and isinstance(value, dict):
        return record(hint, value, f"{where}.", readers)
    raise Unfit(where)
