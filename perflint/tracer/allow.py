"""Syncs that are allowed, and functions that must not sync."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_REASON: ContextVar[str] = ContextVar("perflint_allow_sync", default="")
_SYNC_FREE: ContextVar[str] = ContextVar("perflint_sync_free", default="")
_marked: set[str] = set()


@contextmanager
def allow_sync(reason: str) -> Iterator[None]:
    """Count syncs of this thread or task as allowed, for a reason that traces show; also a decorator.

    Without a trace it costs a few hundred nanoseconds. Raises ValueError for an empty reason.
    """
    if not reason.strip():
        raise ValueError("allow_sync needs a reason, such as allow_sync('the loss is logged')")
    token = _REASON.set(reason)
    try:
        yield
    finally:
        _REASON.reset(token)


def sync_free(function: _Function) -> _Function:
    """State that a function and the functions that it calls never wait for the GPU: a decorator.

    `perflint check` reports syncs in it as errors, and `perflint trace` ends with 1 if one of its calls waits outside
    of `allow_sync`. Without a trace it costs a few hundred nanoseconds. Raises TypeError for generators, whose body
    runs between other code.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"sync_free is for functions, and {function.__qualname__} is a generator")
    name = function.__qualname__
    _marked.add(name)
    marked: Any
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def marked(*args: Any, **named: Any) -> Any:
            token = _SYNC_FREE.set(name)
            try:
                return await function(*args, **named)
            finally:
                _SYNC_FREE.reset(token)
    else:

        @functools.wraps(function)
        def marked(*args: Any, **named: Any) -> Any:
            token = _SYNC_FREE.set(name)
            try:
                return function(*args, **named)
            finally:
                _SYNC_FREE.reset(token)

    result: _Function = marked
    return result


def allowed() -> str:
    """The reason why a sync is allowed here and now; empty if it is not."""
    return _REASON.get()


def promised() -> str:
    """The innermost function marked `sync_free` that runs here and now; empty outside of such functions."""
    return _SYNC_FREE.get()


def has_promises() -> bool:
    """True if the program marked a function `sync_free`."""
    return bool(_marked)
