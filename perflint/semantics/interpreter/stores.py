"""The value of a dict, list or batch after a store into it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.lattice import join, with_key
from perflint.semantics.structure import names_in, path_of
from perflint.semantics.values import Const, Evidence, Mapping, Sequence, Tensor, Value


def is_list(part: Tensor, value: Value) -> bool:
    """True if a part of a batch that gets an item on another device is a list of tensors, then."""
    stored = value.tensor
    return stored is not None and part.evidence is Evidence.CONVENTION and stored.device is not part.device


def batch_with(batch: Sequence, index: Value, value: Value) -> Value:
    """A batch one part of which is replaced: a dict by a text, a list by anything else."""
    if isinstance(index, Const) and isinstance(index.value, str):
        return with_key(Mapping(batch.element), index.value, value)
    tensor = join(batch.element, value).tensor
    return Sequence("batch", tensor) if tensor is not None else batch


def stored_in_turn(frame: Frame, target: ast.Subscript, receiver: Value, value: Value) -> Value | None:
    """The value of a dict, list or batch if a loop over it stores each item anew; None for other stores."""
    if not isinstance(receiver, (Mapping, Sequence)) or not isinstance(target.slice, ast.Name):
        return None
    if not path_of(target.value):
        return None
    loop = next((n for n in _around(frame, target) if isinstance(n, ast.For) and _goes_over(n, target)), None)
    if loop is None:
        return None
    if isinstance(receiver, Mapping):
        return Mapping(value, tuple([(key, value) for key, _ in receiver.items]))
    if receiver.type == "batch":
        return None if value.tensor is None else Sequence("batch", value.tensor)
    return Sequence("list", value) if receiver.type == "list" else None


def _around(frame: Frame, node: ast.AST) -> Iterator[ast.AST]:
    """The nodes around a node in its function."""
    parents = frame.module.structure.parents
    around = parents.get(node)
    while around is not None and not isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        yield around
        around = parents.get(around)


def _goes_over(loop: ast.For, target: ast.Subscript) -> bool:
    """True if a loop binds the index of a store to each key or position of the container."""
    assert isinstance(target.slice, ast.Name)
    if target.slice.id not in names_in(loop.target):
        return False
    iterable = loop.iter
    whole = ast.unparse(target.value)
    forms = (whole, f"{whole}.keys()", f"{whole}.items()", f"list({whole})", f"list({whole}.keys())",
             f"enumerate({whole})", f"range(len({whole}))")  # fmt: skip
    return ast.unparse(iterable) in forms
