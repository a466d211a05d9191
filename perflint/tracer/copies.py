"""Sees copies with `non_blocking=True` whose memory on the host is pageable.

torch's sync debug mode does not report them, but the driver stages them, and the host may wait.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Note = Callable[[str, int, FrameType | None], None]
"""Called for each copy with its direction, its bytes, and the frame that made it."""


def listen(note: Note) -> Callable[[], None]:
    """Tell of each such copy from now on; gives what ends that."""
    import torch

    undo = ExitStack()
    for name in ("to", "cuda", "copy_"):
        original = getattr(torch.Tensor, name)
        # They are inherited: to take back means to delete.
        if name in torch.Tensor.__dict__:
            undo.callback(setattr, torch.Tensor, name, original)
        else:
            undo.callback(delattr, torch.Tensor, name)
        setattr(torch.Tensor, name, _watched(original, name == "copy_", note))
    return undo.close


def _watched(method: Callable[..., Any], into: bool, note: Note) -> Callable[..., Any]:
    from torch.compiler import is_compiling

    @functools.wraps(method)
    def watched(tensor: torch.Tensor, *arguments: Any, **named: Any) -> Any:
        result = method(tensor, *arguments, **named)
        if not is_compiling() and is_non_blocking(arguments, named):
            other = (arguments[0] if arguments else named.get("src")) if into else result
            source: Any = other if into else tensor
            target: Any = tensor if into else other
            if direction := pageable_direction(source, target):
                note(direction, source.numel() * source.element_size(), sys._getframe(1))
        return result

    return watched


def is_non_blocking(arguments: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
    """True if the arguments of a conversion ask for a copy that the CPU does not wait for."""
    # Positional: to(device, dtype, non_blocking), to(other, dtype, non_blocking), cuda(device, non_blocking)
    return bool(named.get("non_blocking")) or any(argument is True for argument in arguments[1:])


def pageable_direction(source: Any, target: Any) -> str:
    """Which way a copy goes between pageable memory and a GPU; empty where it does not."""
    ends = (_device_type(source), _device_type(target))
    if ends == ("cpu", "cuda") and not source.is_pinned():
        return "host-to-device"
    if ends == ("cuda", "cpu") and not target.is_pinned():
        return "device-to-host"
    return ""


def _device_type(value: Any) -> str:
    return str(getattr(getattr(value, "device", None), "type", ""))
