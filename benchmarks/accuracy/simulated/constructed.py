"""Objects of a recorded package move to the GPU when they are constructed, as `module.to("cuda")` moves a module.

A user constructs a model on the CPU and then moves it. Tests of a package construct objects and use them at once. So
the constructors of the package's classes are wrapped: they work on the CPU, and the tensors of a finished object are on
the simulated GPU. If constructors call each other, the outermost object moves.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import torch

from perflint.tracer.simulation.marks import At, put

IsOwn = Callable[[str], bool]
"""True for the name of a file of the package."""
_WRAPPED = "__perflint_constructs__"
_depth = 0


def wrap_all(is_own: IsOwn) -> None:
    """Wrap the constructors of all classes of the package that have been imported."""
    for module in tuple(sys.modules.values()):
        if isinstance(module, ModuleType) and is_own(getattr(module, "__file__", None) or ""):
            for value in tuple(vars(module).values()):
                if isinstance(value, type) and value.__module__ == module.__name__:
                    _wrap(value, is_own)


def _wrap(cls: type, is_own: IsOwn) -> None:
    original = vars(cls).get("__init__")
    if not isinstance(original, FunctionType) or hasattr(original, _WRAPPED):
        return

    @functools.wraps(original)
    def construct(self: Any, *args: Any, **named: Any) -> None:
        global _depth
        _depth += 1
        try:
            original(self, *args, **named)
        finally:
            _depth -= 1
        if not _depth:
            for tensor in tensors_of(self, is_own):
                put(tensor, At.GPU)

    setattr(construct, _WRAPPED, True)
    type.__setattr__(cls, "__init__", construct)


def tensors_of(value: Any, is_own: IsOwn) -> Iterator[Any]:
    """The tensors of an object that move: of a module its parameters and buffers, of others all attributes.

    Containers and objects of the package in attributes count as well.
    """
    pending, seen = [value], set()
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, torch.Tensor):
            yield each
        elif isinstance(each, dict):
            pending += each.values()
        elif isinstance(each, (list, tuple, set, frozenset)):
            pending += each
        elif isinstance(each, torch.nn.Module):
            pending += [*each.parameters(), *each.buffers()]
        elif is_own(_file_of(type(each))):
            pending += getattr(each, "__dict__", {}).values()


def _file_of(cls: type) -> str:
    return getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
