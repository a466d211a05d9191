"""Operators whose result's value or shape depends on data, by their tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

from torch_api import kinds

_TAGS = {
    "data_dependent_output": torch.Tag.data_dependent_output,
    "dynamic_output_shape": torch.Tag.dynamic_output_shape,
}
_PYTHON = {
    "_local_scalar_dense": "torch.Tensor.item torch.Tensor.tolist torch.Tensor.__bool__ torch.Tensor.__int__ "
    "torch.Tensor.__float__ "
    "torch.Tensor.__index__",
    "_unique2": "torch.unique torch.Tensor.unique",
    "unique_dim": "torch.unique torch.Tensor.unique",
    "is_nonzero": "torch.is_nonzero torch.Tensor.is_nonzero torch.Tensor.__bool__",
    "linalg_vander": "torch.linalg.vander",
}


def lines(words: Callable[[Iterable[str]], str]) -> list[str]:
    """The TOML lines: Python names by tag."""
    found: dict[str, set[str]] = {tag: set() for tag in _TAGS}
    operators: dict[str, set[str]] = {tag: set() for tag in _TAGS}
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        if namespace != "aten":
            continue
        tags = getattr(getattr(torch.ops.aten, name), schema.overload_name or "default").tags
        for tag, value in _TAGS.items():
            if value in tags:
                operators[tag].add(name)
                found[tag].update(_names(name))
    result = [""]
    for tag in _TAGS:
        result += ["", f"[{tag}]", f"names = {words(found[tag])}", f"operators = {words(operators[tag])}"]
    return result


def _names(operator: str) -> set[str]:
    """The Python functions and methods of an operator."""
    if operator in _PYTHON:
        return set(_PYTHON[operator].split())
    found = {
        f"{namespace}.{operator}"
        for namespace, holder in kinds.NAMESPACES.items()
        if not operator.startswith("_") and hasattr(holder, operator)
    }
    prefix, _, name = operator.partition("_")
    if prefix in ("linalg", "special", "fft") and hasattr(getattr(torch, prefix), name):
        found.add(f"torch.{prefix}.{name}")
    return found
