"""Sees the calls of torch's functions that the program makes.

Methods, and functions that are written in Python, are replaced by wrappers. The built-in functions of `torch` are
not: libraries keep tables of what they override by the identity of these. A torch function mode sees them, and
operators such as `x[i]` (`__getitem__`). It lies at
the bottom of the stack of modes, so that the program enters and leaves its own modes above it, in any order.
"""

from __future__ import annotations

import functools
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

from perflint.tracer.recording import Recording, Where
from perflint.tracer.witnesses.base import Call, Handler

CALL_LIMIT = 10_000
"""Calls of one place that are handled: each takes some microseconds."""
_PERFLINT = str(Path(__file__).parents[2])
_OPERATORS = {"__add__": "add", "__radd__": "add", "__iadd__": "add_"}
"""Operators that a mode sees as the methods that compute them."""
_DISPATCHERS = ("handle_torch_function", "__torch_function__")
Watched = tuple[Any, str, Handler]
"""The owner of a function, its name there, and a handler of its calls."""


class CallWatch:
    """Calls handlers for the calls of some functions."""

    def __init__(self, recording: Recording, samples: bool = False) -> None:
        self._recording = recording
        self._samples = samples
        """True if built-in functions are watched in a few recorded steps only."""
        self.is_paused = False
        """True to let all calls pass unseen."""
        self._seen: Counter[tuple[CodeType, int]] = Counter()
        self._undo = ExitStack()
        self._builtin: dict[Any, list[Handler]] = {}
        self._mode: Any = None

    def start(self, watched: Iterable[Watched]) -> None:
        """Watch the methods and Python functions among some functions from here on; learn the others. Needs torch."""
        by_name: dict[tuple[int, str], tuple[Any, list[Handler]]] = {}
        for owner, name, handler in watched:
            by_name.setdefault((id(owner), name), (owner, []))[1].append(handler)
        for (_, name), (owner, handlers) in by_name.items():
            function = getattr(owner, _OPERATORS.get(name, name))
            # A wrapper of a special method would slow down all operators of that kind.
            is_method = isinstance(owner, type) and not name.startswith("__")
            if is_method or hasattr(function, "__code__"):
                self._wrap(owner, name, handlers)
            else:
                # The method may be wrapped for another handler.
                self._builtin.setdefault(_unwrapped(function), []).extend(handlers)

    def start_builtins(self) -> None:
        """Watch the built-in functions, too, on this thread."""
        if self._mode is None and self._builtin:
            self._mode = _make_mode(self._through_mode)
            _put_at_bottom(self._mode)

    def stop_builtins(self) -> None:
        """Watch the built-in functions no longer."""
        if self._mode is not None and _take_out(self._mode):
            self._mode = None

    def stop(self) -> None:
        """Watch no longer."""
        self.stop_builtins()
        self._undo.close()

    def _wrap(self, owner: Any, name: str, handlers: list[Handler]) -> None:
        from torch.compiler import is_compiling

        original = getattr(owner, name)
        called, frame = self._called, sys._getframe

        def wrapper(*args: Any, **named: Any) -> Any:
            if is_compiling():
                return original(*args, **named)
            return called(original, handlers, args, named, frame(1))

        watched = functools.wraps(original)(_with_globals_of(original, wrapper))

        if name in vars(owner):
            self._undo.callback(setattr, owner, name, original)
        else:
            self._undo.callback(delattr, owner, name)
        setattr(owner, name, watched)

    def _through_mode(self, function: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        caller = sys._getframe(2)
        if caller.f_code.co_filename.startswith(_PERFLINT):
            # A wrapper of ours is at work: to call it once more would do its work twice.
            return _unwrapped(function)(*args, **named)
        handlers = self._builtin.get(_unwrapped(function))
        if not handlers:
            return function(*args, **named)
        return self._called(function, handlers, args, named, caller)

    def _called(
        self,
        function: Any,
        handlers: list[Handler],
        args: tuple[Any, ...],
        named: Mapping[str, Any],
        frame: FrameType,
    ) -> Any:
        if self.is_paused:
            return function(*args, **named)
        began = time.perf_counter()
        result = function(*args, **named)
        ms = (time.perf_counter() - began) * 1000
        where = self._where(frame, function)
        if where is not None:
            call = Call(function, args, named, result, where, ms)
            for handle in handlers:
                handle(call)
        return result

    def _where(self, frame: FrameType | None, function: Any) -> Where | None:
        """The place of the program that calls a function; None if torch calls it, or after too many calls."""
        code = getattr(function, "__code__", None)
        while frame is not None and (frame.f_code is code or _is_wrapper(frame.f_code)):
            frame = frame.f_back
        if frame is None or not self._recording.locator.is_outside_torch(frame):
            return None
        key = (frame.f_code, frame.f_lasti)
        self._seen[key] += 1
        where = self._recording.where(frame) if self._seen[key] <= CALL_LIMIT else None
        if where is not None and self._samples and _unwrapped(function) in self._builtin:
            return replace(where, sampled=True)
        return where


def _with_globals_of(original: Any, wrapper: Any) -> Any:
    """A wrapper that uses no global names of its own, with the global names of the function in it.

    TorchScript compiles the source of the function, and looks up its names in the wrapper.
    """
    if not isinstance(original, FunctionType):
        return wrapper
    return FunctionType(wrapper.__code__, original.__globals__, wrapper.__name__, None, wrapper.__closure__)


def _is_wrapper(code: CodeType) -> bool:
    """True for code between a call and its function: an override of torch functions, another wrapper of the tracer."""
    if code.co_filename == __file__:
        return False
    return code.co_name in _DISPATCHERS or code.co_filename.startswith(_PERFLINT)


def _unwrapped(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _make_mode(called: Callable[..., Any]) -> Any:
    from torch.overrides import TorchFunctionMode

    mode: Any = TorchFunctionMode

    class Watching(mode):  # type: ignore[misc]
        """Lets all calls pass."""

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return called(function, args, kwargs or {})

    return Watching()


def _put_at_bottom(mode: Any) -> None:
    """Push a mode below the others, but above that of `torch.device`, which must be the lowest."""
    from torch.utils._device import DeviceContext

    stack = _emptied()
    lowest = 1 if stack and isinstance(stack[0], DeviceContext) else 0
    _refill([*stack[:lowest], mode, *stack[lowest:]])


def _take_out(mode: Any) -> bool:
    """Remove a mode from this thread's stack; False if it is not there."""
    stack = _emptied()
    _refill([other for other in stack if other is not mode])
    return mode in stack


def _emptied() -> list[Any]:
    """Pop all modes of this thread; the lowest is the first of the result."""
    import torch

    core: Any = torch._C
    return [core._pop_torch_function_stack() for _ in range(core._len_torch_function_stack())][::-1]


def _refill(stack: list[Any]) -> None:
    import torch

    core: Any = torch._C
    for mode in stack:
        core._push_on_torch_function_stack(mode)
