"""The Python values that the code of a function can reach: an effect of the function on them is a change of one."""

from __future__ import annotations

import sys
import types
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from perflint.tracer.places import is_installed

_ATOMS = (bool, int, float, complex, str, bytes, types.NoneType)
_LISTS = (list, tuple, deque)
_MOST = 200_000
"""The nearest values; more would take seconds."""


class Held:
    """The values at one moment, by expressions that lead to them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        import torch

        self._module: Any = torch.nn.Module
        self._plain = vars(torch.nn.Module()).keys() - {"training", "_buffers", "_modules"}
        self._atoms: dict[str, Any] = {}
        self._tensors: dict[str, Any] = {}
        self._known: dict[int, Any] = {}
        """All objects, so that none of their numbers is used again."""
        waiting: deque[tuple[str, Any]] = deque([("", function)])
        while waiting and len(self._known) < _MOST:
            path, value = waiting.popleft()
            if isinstance(value, _ATOMS):
                self._atoms[path] = value if value == value else "nan"
            elif id(value) not in self._known:
                self._known[id(value)] = value
                if isinstance(value, torch.Tensor):
                    if value.grad_fn is None:
                        self._tensors[path] = value
                else:
                    waiting.extend(self._parts(path, value))

    def changed(self, later: Held) -> set[str]:
        """The expressions whose values are others later."""
        found = {path for path in self._atoms.keys() | later._atoms.keys() if self._differs(path, later)}
        return found | {path for path in self._tensors if later._tensors.get(path) is not self._tensors[path]}

    def _differs(self, path: str, later: Held) -> bool:
        missing = object()
        return bool(self._atoms.get(path, missing) != later._atoms.get(path, missing))

    def _parts(self, path: str, value: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(value, types.MethodType):
            yield path, value.__self__
            yield path, value.__func__
        elif isinstance(value, types.FunctionType):
            if not _is_foreign(value.__module__):
                yield from _read(path, value)
        elif isinstance(value, types.GeneratorType):
            if value.gi_frame is not None:
                yield f"{path}'s place", value.gi_frame.f_lasti
                yield from ((f"{path}.{name}", each) for name, each in value.gi_frame.f_locals.items())
        elif isinstance(value, dict):
            yield f"len({path})", len(value)
            for key, each in tuple(value.items()):
                yield f"{path}[{key!r}]" if isinstance(key, _ATOMS) else f"{path}[{id(key)}]", each
        elif isinstance(value, (*_LISTS, set, frozenset)):
            yield f"len({path})", len(value)
            yield from ((f"{path}[{at}]", each) for at, each in enumerate(value) if isinstance(value, _LISTS))
        elif isinstance(value, self._module):
            for name, each in tuple(vars(value).items()):
                if name not in self._plain:
                    yield f"{path}.{name}" if name not in ("_buffers", "_modules") else path, each
            yield from _methods(type(value))
        elif isinstance(value, type):
            if not _is_foreign(value.__module__):
                yield from ((f"{path}.{name}", each) for name, each in tuple(vars(value).items()) if name[:2] != "__")
        elif not isinstance(value, types.ModuleType):
            yield from self._inside(path, value)

    def _inside(self, path: str, value: Any) -> Iterator[tuple[str, Any]]:
        """The parts of an object: its attributes, or for one of the standard library what a copy is made of."""
        kind = type(value)
        if not _is_foreign(kind.__module__):
            slots = (name for each in kind.__mro__ for name in getattr(each, "__slots__", ()))
            yield from ((f"{path}.{name}", each) for name, each in tuple(getattr(value, "__dict__", {}).items()))
            yield from ((f"{path}.{name}", getattr(value, name, None)) for name in slots if isinstance(name, str))
            yield from _methods(kind)
        elif kind.__module__.partition(".")[0] in sys.stdlib_module_names or kind.__module__.startswith("numpy.random"):
            try:
                with warnings.catch_warnings(action="ignore"):
                    made = value.__reduce_ex__(4)
            except (TypeError, ValueError, RuntimeError, AttributeError, LookupError, OSError):
                # It cannot be copied, such as a file or a lock.
                return
            yield path, made[:3] if isinstance(made, tuple) else None


def _read(path: str, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The values that the code of a function reads from around it."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            # It is not bound yet.
            continue
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    yield f"{function.__name__}'s defaults", (function.__defaults__, function.__kwdefaults__)
    yield from ((f"{function.__name__}.{name}", each) for name, each in tuple(vars(function).items()))


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _names(each)


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    """A class and those that it derives from, which have its functions."""
    return ((each.__name__, each) for each in kind.__mro__)


def _is_foreign(module: str | None) -> bool:
    """True for a module of a package or of the standard library."""
    top = (module or "").partition(".")[0]
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    return top in sys.stdlib_module_names or top in ("torch", "perflint") or (file is not None and is_installed(file))
