"""Which arguments of a function may be tensors that it computes with; sizes, dimensions and counts are not."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torch

from torch_api import kinds

PREFIXES = {"torch": "", "torch.Tensor": "", "torch.nn.functional": ""} | {
    f"torch.{name}": f"{name}_" for name in ("linalg", "special", "fft")
}
"""The namespaces of functions that are operators, and how the names of the operators begin."""

_ALONE = frozenset(
    """expand_as view_as reshape_as resize_as resize_as_ tensor_split narrow unique upsample upsample_nearest
    upsample_bilinear""".split()
)
"""The result is where the first operand is: of others they read the shape, or positions that are on the CPU."""

_ON_CPU_TOO = {"ctc_loss": ("input_lengths", "target_lengths"), "index_put": ("indices",)}
"""Operands that may be on the CPU where the others are not, so that they do not say where the result is."""

DEFAULTS = {"torch.Tensor": ""}

Operand = tuple[str, int | None]
"""The name of an argument and its position, None for one that goes by its name alone."""


def operands(kind: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The operands besides a receiver, by name, by namespace: "index@1 source@2", "?" where all may be.

    Left out are methods with no other operands, and functions of one.
    """
    found: dict[str, dict[str, str]] = {}
    for namespace, prefix in PREFIXES.items():
        for name, result in kind[namespace].items():
            if result.startswith(("tensor", "self")):
                fact = _written(_of(namespace, prefix, name), _ON_CPU_TOO.get(name, ()))
                if fact != DEFAULTS.get(namespace, "input@0"):
                    found.setdefault(namespace, {})[name] = fact
    return found


def _written(known: list[Operand] | None, left_out: tuple[str, ...]) -> str:
    if known is None:
        return "?"
    return " ".join(dict.fromkeys(name if at is None else f"{name}@{at}" for name, at in known if name not in left_out))


def _of(namespace: str, prefix: str, name: str) -> list[Operand] | None:
    is_method = namespace == "torch.Tensor"
    if name in _ALONE:
        return [] if is_method else [("input", 0)]
    schemas = _schemas(prefix + name)
    typed = [operand for schema in schemas for operand in _in_schema(schema, is_method)]
    parameters = _parameters(getattr(kinds.NAMESPACES[namespace], name, None))
    if parameters is None:
        return typed if schemas else None
    if any(item.kind is item.VAR_POSITIONAL for item in parameters):
        # Of a dispatching wrapper of torch.nn.functional the operator has the arguments; others take many tensors.
        return typed if schemas and namespace == "torch.nn.functional" else None
    names = {name for name, _ in typed}
    others = {item.name for schema in schemas for item in schema.arguments} - names
    return list(_in_signature(parameters[is_method:], others))


def _schemas(name: str) -> list[Any]:
    return list(torch._C._jit_get_schemas_for_operator(f"aten::{name}"))


def _in_schema(schema: Any, is_method: bool) -> Iterator[Operand]:
    arguments = schema.arguments
    if is_method:
        if not arguments or arguments[0].name != "self":
            return
        arguments = arguments[1:]
    for position, item in enumerate(arguments):
        if "Tensor" in str(item.type) and not item.is_out:
            name = "input" if item.name == "self" else item.name
            yield name, None if item.kwarg_only else position


def _parameters(member: object) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(member).parameters.values())  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _in_signature(parameters: list[inspect.Parameter], others: set[str]) -> Iterator[Operand]:
    """The operands among the parameters of a Python function; `others` are those that its operator says are none."""
    for position, item in enumerate(parameters):
        says = item.annotation is not item.empty
        if item.name != "out" and ("Tensor" in str(item.annotation) if says else item.name not in others):
            yield item.name, None if item.kind is item.KEYWORD_ONLY else position
