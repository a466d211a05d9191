"""Sees calls of torch's functions before they run and after they have returned."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import CodeType, FrameType
from typing import Any

from perflint.tracer.replacing import replace

Begin = Callable[[tuple[Any, ...], Mapping[str, Any], FrameType], Any]
"""Gets the arguments and the caller of a call; gives what `End` needs, or None if the call is not watched."""
End = Callable[[Any, Any], None]
"""Gets what `Begin` gave, and the result; None if the call raised an error."""


def wrap(undo: ExitStack, owner: Any, name: str, begin: Begin, end: End) -> None:
    """Watch the calls of a method or a Python function that the program makes, but none in compiled code."""
    from torch.compiler import is_compiling

    original = getattr(owner, name)

    def watched(*args: Any, **named: Any) -> Any:
        if is_compiling():
            return original(*args, **named)
        begun = begin(args, named, sys._getframe(1))
        if begun is None:
            return original(*args, **named)
        result = None
        try:
            result = original(*args, **named)
        finally:
            end(begun, result)
        return result

    _let_through(watched.__code__)
    functools.update_wrapper(watched, original)

    replace(undo, owner, name, watched)


def _let_through(code: CodeType) -> None:
    """Have the compiler skip a frame, so that it begins with the function that is called there, as without it."""
    import torch

    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "skip_code"):
        frames.skip_code(code)
    elif hasattr(frames, "set_code_exec_strategy"):
        # The form of later versions. The functions that the frame calls are compiled.
        action = frames._FrameAction
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(action.SKIP, action.DEFAULT))
