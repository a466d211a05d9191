"""One hook for the steps of all optimizers, with listeners that come and go.

torch goes through its own hooks while one of them ends a session, and fails if a hook is removed then. So ours stays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

Stepped = Callable[[Any], object]
"""Called with an optimizer after its step."""
_listeners: list[Stepped] = []


def listen(stepped: Stepped) -> Callable[[], None]:
    """Call `stepped` after each step of an optimizer in this process; the result ends that. Needs torch."""
    _listeners.append(stepped)
    _hook()
    return lambda: _listeners.remove(stepped)


@cache
def _hook() -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook

    def after(optimizer: Any, *_: object) -> None:
        for stepped in tuple(_listeners):
            if stepped in _listeners:
                stepped(optimizer)

    register_optimizer_step_post_hook(after)
