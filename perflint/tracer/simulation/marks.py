"""The simulated places of tensors: a mark on each storage.

Views share their storage, `p.data = t` swaps it, and it lives as long as its memory: as on a GPU, the
device belongs to the storage, so no other table has to follow tensors around. A storage without a mark
is the host's.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from perflint.tracer import syncs


class At(Enum):
    """The simulated place of memory."""

    HOST = "host"
    GPU = "gpu"
    EITHER = "either"
    """Made inside torch for tensors that it does not name here: where these are."""


class State(threading.local):
    """The state of the thread."""

    asks = 0
    """Inside a call by which the program asks for a device or for the default."""
    silent = 0
    """Inside a call that reads its tensors on the CPU and would not on a GPU."""


state = State()


def place_of(tensor: Any) -> At:
    """The simulated place of a tensor."""
    storage = _storage(tensor)
    return getattr(storage, "perflint_at", At.HOST) if storage is not None else At.HOST


def put(tensor: Any, at: At) -> None:
    """Say where a tensor would be."""
    storage = _storage(tensor)
    if storage is not None:
        storage.perflint_at = at


def is_on_gpu(tensor: Any) -> bool:
    """True if a tensor would be on the GPU."""
    return place_of(tensor) is At.GPU


def is_pinned(tensor: Any) -> bool:
    """True if the memory of a tensor on the host would be pinned."""
    return bool(getattr(_storage(tensor), "perflint_pinned", False))


def pin(tensor: Any) -> None:
    """Say that the memory of a tensor would be pinned."""
    tensor.untyped_storage().perflint_pinned = True


def note_list(tensor: Any) -> None:
    """Say that torch itself made a tensor, of Python's numbers."""
    tensor.untyped_storage().perflint_lifted = True


def is_from_list(tensor: Any) -> bool:
    """True if torch itself made a tensor of Python's numbers, such as those of `x[[0, 1]]`."""
    return bool(getattr(_storage(tensor), "perflint_lifted", False))


def _storage(tensor: Any) -> Any:
    try:
        return tensor.untyped_storage()
    except (RuntimeError, NotImplementedError):
        inner = _inner(tensor)
        return None if inner is None else _storage(inner)


def _inner(tensor: Any) -> Any:
    """The tensor that a tensor without a storage of its own holds, or None."""
    import torch

    functorch = torch._C._functorch
    if functorch.is_functorch_wrapped_tensor(tensor):
        return functorch.get_unwrapped(tensor)
    if tensor.layout is torch.sparse_coo:
        with torch.utils._python_dispatch._disable_current_modes():
            return tensor._values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        with torch.utils._python_dispatch._disable_current_modes():
            return tensor.values()
    return None


def tensors_in(values: Any) -> Iterator[Any]:
    """The tensors in the arguments or the result of an operator."""
    import torch

    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


@contextmanager
def asking() -> Iterator[None]:
    """The program itself names the device of what is made."""
    state.asks += 1
    try:
        yield
    finally:
        state.asks -= 1


@contextmanager
def silent() -> Iterator[None]:
    """Record no waits in here: they would not happen on a GPU."""
    state.silent += 1
    try:
        yield
    finally:
        state.silent -= 1


def wait() -> None:
    """The host would wait for the GPU here."""
    if not state.silent:
        # What looks for the program's line passes over the frames of perflint.
        syncs.tell("implicit", sys._getframe(1))


def wait_for_copy(tensor: Any) -> None:
    """The host would wait here for a copy of a tensor, if there is anything to copy."""
    if tensor.numel():
        wait()


Replacements = dict[int, tuple[Any, Any]]
"""The replacements: by the identity of the original, it and its replacement."""


def replace_everywhere(replacements: Replacements) -> None:
    """Have each module of torch that holds one of the originals hold what replaces it."""
    for name, module in tuple(sys.modules.items()):
        if name != "torch" and not name.startswith("torch."):
            continue
        for key, value in tuple(vars(module).items()):
            if (found := replacements.get(id(value))) is not None:
                setattr(module, key, found[1])


def noted(into: Replacements, original: Any, replacement: Any) -> None:
    """Add a replacement."""
    into[id(original)] = (original, replacement)
