"""Hooks that run at the forward passes of all modules."""

from __future__ import annotations

from collections.abc import Callable
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
