"""Hooks that run at the forward passes of all modules."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any


def after_forwards(hook: Callable[[Any, Any, Any, Any], None]) -> Callable[[], None]:
    """Call `hook(module, arguments, named, output)` after each forward pass. The function that is returned ends it."""
    from torch.nn.modules.module import _global_forward_hooks_with_kwargs, register_module_forward_hook

    handle = register_module_forward_hook(hook, with_kwargs=True)

    def remove() -> None:
        handle.remove()
        # torch leaves this entry behind, and then warns at each call of a compiled module of hooks that are gone.
        _global_forward_hooks_with_kwargs.pop(handle.id, None)

    return remove


def around_forwards(
    before: Callable[[Any, Any], None], after: Callable[[Any, Any, Any, Any], None], left: Callable[[], None]
) -> ExitStack:
    """Call functions around each forward pass that no compiler traces, until the result is closed.

    `before(module, arguments)` runs first, `after(module, arguments, named, output)` once the pass has returned, and
    `left()` last, also if the pass raised.
    """
    from torch.compiler import is_compiling
    from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

    def begin(module: Any, arguments: Any) -> None:
        if not is_compiling():
            before(module, arguments)

    def end(module: Any, arguments: Any, named: Any, output: Any) -> None:
        if not is_compiling():
            after(module, arguments, named, output)

    def leave(*_: Any) -> None:
        if not is_compiling():
            left()

    hooks = ExitStack()
    hooks.callback(register_module_forward_pre_hook(begin).remove)
    hooks.callback(after_forwards(end))
    hooks.callback(register_module_forward_hook(leave, always_call=True).remove)
    return hooks
