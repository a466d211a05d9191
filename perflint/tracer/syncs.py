"""Sees the syncs that torch's sync debug mode warns of, the explicit ones, and operators that fall back to the CPU."""

from __future__ import annotations

import functools
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

MESSAGE = "called a synchronizing CUDA operation"
_OF_HOOKS = "Using `torch.compile(module)` when there are global hooks on modules"
"""torch says so where a module is compiled while the tracer watches calls."""
_FALLBACKS = ("will fall back to run on the CPU", "fallback from XPU to CPU")
"""torch says so where a GPU has no kernel: the CPU waits for the inputs, computes, and copies the result back."""
_WARN, _DEFAULT = 1, 0
Note = Callable[[str, FrameType | None], None]
"""Called for each sync with its kind and the frame that made it."""

_listeners: list[Note] = []
_installed = ExitStack()
_quiet = threading.local()
_passed_on = threading.local()
_is_armed = False


def listen(note: Note) -> Callable[[], None]:
    """Tell of each sync from now on, on the thread that made it; gives what ends that.

    Where torch has yet to be imported, `arm` is to be called then. The program's own warnings and
    filters stay as they are. CUDA is not initialised: where it is not yet, the mode is set as soon as
    the program does that.
    """
    _listeners.append(note)
    if len(_listeners) == 1:
        _install()

    def end() -> None:
        _listeners.remove(note)
        if not _listeners:
            _uninstall()

    return end


@contextmanager
def quiet() -> Iterator[None]:
    """Hide warnings of the tracer's own use of torch from the program; works only while syncs are recorded."""
    _quiet.yes = True
    try:
        yield
    finally:
        _quiet.yes = False


def tell(kind: str, frame: FrameType | None) -> None:
    """Tell all who listen of a sync that `frame` made; for what sees syncs by other means, too."""
    for note in tuple(_listeners):
        note(kind, frame)


class _Pattern:
    """The message pattern of a warning filter.

    The interpreter asks the filters in their order and on the thread that warns, so that the first
    one sees each sync, and as its action is "ignore" no other code does. It needs no `showwarning`,
    which belongs to the program, and is not forgotten by the registries of what was warned of once.
    Code that copies the filters, such as scikit-learn, reads `pattern`, as of a compiled expression.
    """

    pattern = f".*{MESSAGE}"

    def __init__(self) -> None:
        self._shown: dict[str, dict[Any, Any]] = {}

    def match(self, text: str) -> bool:
        if MESSAGE not in text:
            if getattr(_quiet, "yes", False) or text.startswith(_OF_HOOKS):
                return True
            return any(said in text for said in _FALLBACKS) and self._fell_back(text, sys._getframe(1))
        tell("implicit", sys._getframe(1))
        return True

    def _fell_back(self, text: str, frame: FrameType) -> bool:
        """False while the program's own filters are asked; they see the warning as if there were no other."""
        if getattr(_passed_on, "yes", False):
            return False
        tell("fallback", frame)
        _passed_on.yes = True
        try:
            # In the registry of the module, the interpreter would not ask the filters again.
            path, shown = frame.f_code.co_filename, self._shown
            warnings.warn_explicit(text, UserWarning, path, frame.f_lineno, registry=shown.setdefault(path, {}))
        finally:
            _passed_on.yes = False
        return True


_FILTER = ("ignore", _Pattern(), Warning, None, 0)


def _install() -> None:
    # What the program adds goes before ours: put it back to the front each time.
    for name in ("filterwarnings", "simplefilter", "resetwarnings"):
        _replace(warnings, name, _then_first(getattr(warnings, name)))
    _put_first()
    _installed.callback(_remove)
    if "torch" in sys.modules:
        arm()


def arm() -> None:
    """torch has been imported since `listen`."""
    global _is_armed
    if _is_armed or not _listeners:
        return
    _is_armed = True
    import torch

    cuda: Any = torch.cuda
    for owner in (cuda, cuda.Event, cuda.Stream):
        _replace(owner, "synchronize", _explicit(owner.synchronize))
    # It is looked up at both. What it frees, the driver frees only when the GPU has done all its work.
    for owner in (cuda, cuda.memory):
        _replace(owner, "empty_cache", _explicit(owner.empty_cache))
    accelerator = torch.accelerator.current_accelerator() if hasattr(torch, "accelerator") else None
    if accelerator is not None and accelerator.type != "cuda":
        # Else torch tells of the first operator alone that falls back.
        _installed.callback(torch.set_warn_always, torch.is_warn_always_enabled())
        torch.set_warn_always(True)
    _set_mode(_WARN)


def _uninstall() -> None:
    global _is_armed
    _installed.close()
    if _is_armed:
        _is_armed = False
        _set_mode(_DEFAULT)


def _put_first() -> None:
    filters: list[Any] = warnings.filters  # type: ignore[assignment]
    _remove()
    filters.insert(0, _FILTER)


def _remove() -> None:
    filters: list[Any] = warnings.filters  # type: ignore[assignment]
    while _FILTER in filters:
        filters.remove(_FILTER)


def _then_first(change: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(change)
    def changed(*arguments: Any, **named: Any) -> None:
        # `stacklevel` has no meaning here: no function of the warnings module that is wrapped takes it.
        change(*arguments, **named)
        if _listeners:
            _put_first()

    return changed


def _explicit(wait: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(wait)
    def watched(*arguments: Any, **named: Any) -> Any:
        result = wait(*arguments, **named)
        # Also after the end: a program may have imported this function by name.
        if _listeners and _uses_cuda():
            tell("explicit", sys._getframe(1))
        return result

    return watched


def _uses_cuda() -> bool:
    import torch

    cuda: Any = torch.cuda
    return bool(cuda.is_initialized())


def _replace(owner: Any, name: str, value: Any) -> None:
    _installed.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)


def _set_mode(mode: int) -> None:
    import torch

    cuda: Any = torch.cuda

    def set_now() -> None:
        if mode == _DEFAULT or _listeners:
            with quiet():
                torch._C._cuda_set_sync_debug_mode(mode)

    if cuda.is_initialized():
        set_now()
    elif mode == _WARN:
        # The public function would initialise CUDA; this runs when the program has just done that.
        cuda._lazy_call(set_now)
