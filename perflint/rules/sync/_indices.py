"""The parts between the brackets of `x[…]`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum

from perflint.frozen import dataclass
from perflint.rules._memory.flows import made
from perflint.semantics.memo import once_per_site
from perflint.semantics.sites import SubscriptSite
from perflint.semantics.structure import last_name
from perflint.semantics.values import (
    NONE,
    UNKNOWN,
    Array,
    Const,
    Device,
    Kind,
    Sequence,
    Tensor,
    Value,
    scalar_type,
)

_BYTES = frozenset({"byte", "uint8", "ByteTensor"})


class Index(Enum):
    """The kinds of index that torch treats differently."""

    INTEGER = "integer"
    VIEW = "view"
    """A slice, None or Ellipsis."""
    MASK = "mask"
    """A boolean tensor that is not known to be on the CPU."""
    HOST_MASK = "host mask"
    POSITIONS = "positions"
    """A tensor of integers that is not known to be on the CPU."""
    SCALAR_TENSOR = "scalar tensor"
    """The same with no dimensions: torch reads it, to index as with a Python integer."""
    HOST_POSITIONS = "host positions"
    """A tensor of integers on the CPU."""
    LIST = "list"
    """A list or range of integers, a tuple of them that is one part of several, or an array."""
    TENSOR = "tensor"
    """A tensor of unknown dtype that is not known to be on the CPU."""
    UNKNOWN = "unknown"


_MASKS = {Index.POSITIONS: Index.MASK, Index.HOST_POSITIONS: Index.HOST_MASK}
"""The kind of an index of bytes by its kind as positions: torch takes bytes for a mask."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an index with its expression; that of the whole index where parts have none."""

    kind: Index
    node: ast.expr
    value: Value

    @property
    def is_bool(self) -> bool:
        """True if a mask is known to be one, not only named so."""
        return self.value.tensor is not None and self.value.tensor.kind is Kind.BOOL


@once_per_site
def parts(site: SubscriptSite) -> tuple[Part, ...]:
    """The parts of an index: `x[a, 1:2]` has two."""
    node = site.node.slice
    if isinstance(node, ast.Tuple):
        return tuple([part for element in node.elts for part in _written(site, element)])
    value = site.value(node)
    if isinstance(value, Sequence) and value.type == "tuple":
        if value.items is None:
            # `(slice(None),) * dim + (rows,)` holds both.
            return tuple([_part(site, node, member) for member in value.element.members])
        return tuple([_part(site, node, item) for item in value.items])
    return (_part(site, node, value),)


def indices(site: SubscriptSite) -> Iterator[Index]:
    """The kinds of the parts."""
    return (part.kind for part in parts(site))


def _written(site: SubscriptSite, node: ast.expr) -> Iterator[Part]:
    """The parts that an element of a tuple in the source stands for: `*rows` for several."""
    if not isinstance(node, ast.Starred):
        yield _part(site, node, site.value(node))
        return
    value = site.value(node.value)
    if isinstance(value, Sequence) and value.items is not None:
        yield from (_part(site, node, item) for item in value.items)
    elif isinstance(value, Tensor) and value.rank is not None and value.rank > 1:
        yield _part(site, node, value.with_(rank=value.rank - 1, leaf=""))
    else:
        yield _part(site, node, UNKNOWN)


def _part(site: SubscriptSite, node: ast.expr, value: Value) -> Part:
    kind = _kind(node, value)
    is_mask = kind in (Index.POSITIONS, Index.HOST_POSITIONS) and _is_made_of_bytes(site, node)
    return Part(_MASKS[kind] if is_mask else kind, node, value)


def _is_made_of_bytes(site: SubscriptSite, node: ast.expr) -> bool:
    """True for the tensor of `x.byte()`, `x.to(torch.uint8)` and the like, which torch takes for a mask."""
    call = made(site.model, node)
    if not isinstance(call, ast.Call):
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return last_name(call.func) in _BYTES or any(last_name(each) in _BYTES for each in given)


def _kind(node: ast.expr, value: Value) -> Index:
    if isinstance(node, ast.Slice) or value == NONE or value == Const(...):
        return Index.VIEW
    tensor = value.tensor
    if tensor is not None:
        if any(isinstance(member, Sequence) and member.type == "tuple" for member in value.members):
            # `m.nonzero(as_tuple=True) if m.ndim else m`
            return Index.UNKNOWN
        kind = _tensor_kind(tensor)
        return Index.MASK if kind is Index.TENSOR and _is_called_mask(node) else kind
    if scalar_type(value) == "slice":
        return Index.VIEW
    if scalar_type(value) in ("int", "bool") or (isinstance(value, Array) and value.rank == 0):
        return Index.INTEGER
    if isinstance(value, Array) or (isinstance(value, Sequence) and value.type in ("list", "range")):
        return Index.VIEW if _holds_slices(value) else Index.LIST
    if isinstance(value, Sequence) and value.type == "tuple" and _holds_integers(value):
        # Only the whole index is taken apart: `x[:, (0, 2)]`.
        return Index.LIST
    return Index.MASK if _is_called_mask(node) else Index.UNKNOWN


def _holds_integers(value: Sequence) -> bool:
    return {scalar_type(member) for member in value.element.members} == {"int"}


def _holds_slices(value: Value) -> bool:
    """True if a list is meant as the tuple of its slices: `x[[slice(None), slice(0, 3)]]`."""
    if not isinstance(value, Sequence):
        return False
    members = value.element.members
    return any(member == Const(...) or getattr(member, "type", "") == "slice" for member in members)


def _is_called_mask(node: ast.expr) -> bool:
    """True if an index of unknown dtype is at least called a mask."""
    while isinstance(node, (ast.Subscript, ast.Call)):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    name = last_name(node)
    return bool({"mask", "masks"} & set(name.lower().split("_")))


def _tensor_kind(tensor: Tensor) -> Index:
    host = tensor.device is Device.CPU
    if tensor.kind is Kind.BOOL:
        return Index.HOST_MASK if host else Index.MASK
    if host:
        return Index.HOST_POSITIONS
    if tensor.kind is Kind.INT:
        return Index.SCALAR_TENSOR if tensor.rank == 0 else Index.POSITIONS
    return Index.TENSOR
