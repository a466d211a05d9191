"""Calls of modules that compute the same once more in a step."""

from __future__ import annotations

import random
import sys
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from perflint.tracer.hooks import around_forwards
from perflint.tracer.modules import autocast_dtype
from perflint.tracer.recording import Where
from perflint.tracer.witnesses._writes import Writes
from perflint.tracer.witnesses.base import Call, Handler, Witness
from perflint.tracer.witnesses.recomputation import is_in_backward

SEARCHED = 2
"""Recorded steps in which modules are found that are called with equal arguments: that is cheap."""
CHECKED = 3
"""Steps after these in which the state of such modules is compared, too."""
_PERFLINT = str(Path(__file__).parents[2])
_LIMIT = 10_000
_DEPTH = 4
_PLAIN = (int, float, complex, str, bytes, bool, type(None))


class _Unknown(Exception):
    """A value that cannot be compared with another one."""


@dataclass(frozen=True, slots=True)
class _First:
    """The first call of a module with some arguments in a step."""

    module: Any
    tensors: tuple[Any, ...]
    """References to the tensors, which are not kept alive."""
    state: object
    """That of the module before the call."""


@dataclass(slots=True)
class _Running:
    """A call that has not returned."""

    state: object
    chance: object
    """The state of the random number generators before the call."""
    found: int
    """The number of repetitions before the call."""


class Repeats(Witness):
    """Compares the calls of modules in the first recorded steps."""

    def start(self) -> None:
        self._step = 0
        self._thread = 0
        self._backwards = 0
        self._hooks = ExitStack()
        self._listens = False
        self._candidates: dict[int, Any] = {}
        self._checked: list[list[tuple[Where, str]]] = []
        self._forget()
        self._listen()

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        self._writes = Writes()
        yield from self._writes.calls()
        yield torch.Tensor, "backward", self._backward
        yield torch.autograd, "backward", self._backward
        yield torch.autograd, "grad", self._backward

    def restart(self) -> None:
        self._step = 0
        self._checked.clear()
        self._forget()
        self._listen()

    def end_step(self) -> None:
        if not self._listens:
            return
        if self._step >= SEARCHED:
            self._checked.append(list(self._found))
        self._forget()
        self._step += 1
        if self._step >= SEARCHED + CHECKED:
            self._hooks.close()
            self._listens = False

    def stop(self) -> None:
        self._hooks.close()
        self._listens = False
        for found in self._checked:
            self._report(found)
        self._checked.clear()
        self._candidates.clear()
        self._forget()

    def _forget(self) -> None:
        """The calls so far are those of another step."""
        self._first: dict[object, _First] = {}
        self._running: list[_Running | None] = []
        self._found: list[tuple[Where, str]] = []

    def _report(self, found: list[tuple[Where, str]]) -> None:
        """Record the repetitions of one step, once for each place."""
        self.observe("forward.watched", Where(None, 0))
        by_place = defaultdict(list)
        for where, name in found:
            by_place[where.place].append((where, name))
        for calls in by_place.values():
            where, name = calls[0]
            more = f"{len(calls)} calls of {name}" if len(calls) > 1 else f"a call of {name}"
            self.observe("forward.repeated", where, detail=more)

    def _listen(self) -> None:
        if self._listens:
            return
        self._listens = True
        begin, end, leave = (self._guarded(do) for do in (self._begins, self._returned, self._leaves))

        def after(module: Any, arguments: Any, named: Any, output: Any) -> None:
            # The frame below that of the hook.
            end(module, (arguments, named), sys._getframe(2))

        self._hooks = around_forwards(lambda module, _: begin(module), after, leave)

    def _backward(self, _: Call) -> None:
        self._backwards += 1

    def _begins(self, module: Any) -> None:
        if not self._running:
            self._thread = threading.get_ident()
        elif self._thread != threading.get_ident():
            return
        known = self._candidates.get(id(module))
        if self._step < SEARCHED or known is None or known() is not module:
            self._running.append(None)
        else:
            self._running.append(_Running(self._state(module), _chance(), len(self._found)))

    def _leaves(self) -> None:
        if self._running and self._thread == threading.get_ident():
            self._running.pop()

    def _returned(self, module: Any, values: Any, frame: FrameType | None) -> None:
        if self._thread != threading.get_ident() or not self._running or len(self._first) >= _LIMIT:
            return
        running = self._running[-1]
        if self._step >= SEARCHED and running is None:
            return
        if not self._recording.records or is_in_backward() or not _has_parameters(module):
            return
        if not self._is_called_from_outside(frame):
            return
        tensors: list[Any] = []
        try:
            values = self._compared(values, tensors)
        except _Unknown:
            return
        if not tensors:
            return
        key = id(module), values, _mode(module)
        first = self._first.get(key)
        if first is not None and first.module() is module and all(ref() is not None for ref in first.tensors):
            self._repeated(module, first, running, frame)
            return
        if running is not None and not self._is_pure(module, running):
            return
        state = running.state if running is not None else None
        self._first[key] = _First(weakref.ref(module), tuple(map(weakref.ref, tensors)), state)

    def _repeated(self, module: Any, first: _First, running: _Running | None, frame: FrameType | None) -> None:
        if running is None:
            self._candidates[id(module)] = weakref.ref(module)
            return
        if first.state != running.state or not self._is_pure(module, running):
            return
        where = self.where(frame)
        if where is not None:
            # The calls inside of it are repeated, too.
            del self._found[running.found :]
            self._found.append((where, type(module).__name__))

    def _is_pure(self, module: Any, running: _Running) -> bool:
        """True if a call that has returned changed no state of the module, and used no random numbers."""
        if running.state is None or running.chance is None:
            return False
        return self._state(module) == running.state and _chance() == running.chance

    def _compared(self, value: Any, tensors: list[Any], depth: int = 0) -> object:
        """Equal for equal arguments, with the tensors in them; raises _Unknown for objects that may have changed."""
        import torch

        if isinstance(value, torch.Tensor):
            state = self._writes.state(value)
            if state is None:
                raise _Unknown
            tensors.append(value)
            return state
        if isinstance(value, _PLAIN):
            return type(value), value
        if isinstance(value, (torch.dtype, torch.device)):
            return value
        if depth < _DEPTH and isinstance(value, (tuple, list)):
            return tuple(self._compared(item, tensors, depth + 1) for item in value)
        if depth < _DEPTH and isinstance(value, dict):
            return tuple((str(key), self._compared(item, tensors, depth + 1)) for key, item in value.items())
        raise _Unknown

    def _state(self, module: Any) -> object:
        """Equal unless a module has changed; None if that cannot be seen."""
        import torch

        found: list[object] = [self._backwards if torch.is_grad_enabled() else 0]
        for inner in module.modules():
            if inner._forward_hooks or inner._forward_pre_hooks:
                return None
            for name, value in vars(inner).items():
                held = value.values() if isinstance(value, dict) else (value,)
                found.append((name, len(value)) if isinstance(value, (list, set, dict)) else name)
                for each in held:
                    if not isinstance(each, torch.Tensor):
                        found.append(each if isinstance(each, _PLAIN) else id(each))
                    elif (state := self._writes.state(each)) is not None:
                        found.append(state)
                    else:
                        return None
        return found

    def _is_called_from_outside(self, frame: FrameType | None) -> bool:
        """True if the program calls a module, and not another module of torch, such as `Sequential`."""
        while frame is not None and _is_between(frame.f_code.co_filename):
            frame = frame.f_back
        return frame is not None and self.locator.is_outside_torch(frame)


def _is_between(file: str) -> bool:
    """True for code between a call of a module and its hooks, such as wrappers of the tracer."""
    return file.startswith(_PERFLINT) or file.replace("\\", "/").endswith("torch/nn/modules/module.py")


def _mode(module: Any) -> tuple[object, ...]:
    import torch

    return bool(module.training), torch.is_grad_enabled(), torch.is_inference_mode_enabled(), autocast_dtype()


def _has_parameters(module: Any) -> bool:
    return next(module.parameters(), None) is not None


def _chance() -> object:
    """The state of the random number generators; None if it cannot be read. It lies on the CPU, also for a GPU."""
    import torch

    states = [hash(random.getstate()), bytes(torch.get_rng_state().numpy())]
    if "numpy" in sys.modules:
        _, keys, *rest = sys.modules["numpy"].random.get_state()
        states += [keys.tobytes(), *rest]
    cuda: Any = torch.cuda
    if cuda.is_initialized():
        if cuda.is_current_stream_capturing():
            return None
        states.append(bytes(cuda.get_rng_state().numpy()))
    return states
