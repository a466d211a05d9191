"""Finds the program's steps."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from enum import IntEnum
from typing import Any

from perflint.tracer.optimizer_steps import listen
from perflint.tracer.replays import in_graph, watch

SWITCH_AFTER = 8
"""Steps of another optimizer without one of the first, after which that one sets the pace."""


class StepSource(IntEnum):
    """The source of the steps; a greater one silences a lesser one."""

    NONE = 0
    MODULE = 1
    LOADER = 2
    OPTIMIZER = 3
    MARKED = 4


class StepFinder:
    """Calls `ended` at the end of each step, and `restart` first when a better source speaks up.

    An optimizer's step is one, also in a CUDA graph: the first of several optimizers sets the pace. Without one,
    batches of a `DataLoader` are, and without that, calls of root modules. Only one thread at a time is
    listened to for these: the first.
    """

    def __init__(self, ended: Callable[[], None], restart: Callable[[], None]) -> None:
        self.source = StepSource.NONE
        self._ended = ended
        self._restart = restart
        self.on_optimizer: Callable[[Any], None] | None = None
        """Called for each step of an optimizer, before it ends a step of the program."""
        self.on_result: Callable[[Any], None] | None = None
        """Called with the result of each call of a root module, until optimizers make steps or `rest` is called."""
        self._optimizer: int | None = None
        self._others: Counter[int] = Counter()
        self._thread: int | None = None
        self._calls = threading.local()
        self._undo = ExitStack()
        self._undo_modules = ExitStack()

    def start(self) -> None:
        """Watch from here on. Needs torch."""
        from torch.utils.data import dataloader

        watch()
        self._undo.callback(listen(self._optimizer_stepped))
        base = dataloader._BaseDataLoaderIter
        self._undo.callback(setattr, base, "__next__", base.__next__)
        base.__next__ = self._batches(base.__next__)  # type: ignore[method-assign, assignment]
        self._watch_modules()

    def rest(self) -> None:
        """Watch on only for sources better than modules, which costs nothing."""
        self._undo_modules.close()

    def stop(self) -> None:
        """Watch no longer."""
        self.rest()
        self._undo.close()

    def mark(self) -> None:
        """The program says that a step ended."""
        self._tick(StepSource.MARKED)

    @property
    def is_final(self) -> bool:
        """True if no better source can come."""
        return self.source >= StepSource.OPTIMIZER

    def _tick(self, source: StepSource) -> None:
        if source < self.source:
            return
        thread = threading.get_ident()
        if source > self.source:
            self.source = source
            self._thread = thread
            self._restart()
            if source > (StepSource.MODULE if self.on_result is None else StepSource.LOADER):
                self._undo_modules.close()
        if thread == self._thread:
            self._ended()

    def _optimizer_stepped(self, optimizer: Any) -> None:
        # While a CUDA graph is captured, nothing is computed; then its replays are the steps.
        if not in_graph(functools.partial(self._stepped, optimizer)):
            self._stepped(optimizer)

    def _stepped(self, optimizer: Any) -> None:
        if self.on_optimizer is not None:
            self.on_optimizer(optimizer)
        this = id(optimizer)
        if self._optimizer is None:
            self._optimizer = this
        if this == self._optimizer:
            self._others.clear()
            self._tick(StepSource.OPTIMIZER)
            return
        self._others[this] += 1
        if self._others[this] > SWITCH_AFTER:
            self._optimizer = this
            self._others.clear()

    def _batches(self, next_batch: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(next_batch)
        def watched(iterator: Any) -> Any:
            self._tick(StepSource.LOADER)
            return next_batch(iterator)

        return watched

    def _watch_modules(self) -> None:
        from torch.compiler import is_compiling
        from torch.nn.modules.module import Module, register_module_forward_hook, register_module_forward_pre_hook

        def before(module: Any, _: Any = None) -> None:
            if is_compiling():
                return
            depth = getattr(self._calls, "depth", 0)
            self._calls.depth = depth + 1
            if not depth:
                self._tick(StepSource.MODULE)

        def after(module: Any, _: Any = None, result: Any = None) -> None:
            if is_compiling():
                return
            self._calls.depth = max(getattr(self._calls, "depth", 0) - 1, 0)
            if not self._calls.depth and self.on_result is not None:
                self.on_result(result)

        kind: Any = Module
        make: Any = getattr(kind, "compile", None)
        is_watched = [True]

        @functools.wraps(make or before)
        def compiled(module: Any, *arguments: Any, **keywords: Any) -> None:
            # Compiled code has no hooks.
            make(module, *arguments, **keywords)
            call = module._compiled_call_impl

            def watched(*inputs: Any, **named: Any) -> Any:
                if is_compiling() or not is_watched:
                    return call(*inputs, **named)
                before(module)
                result = None
                try:
                    result = call(*inputs, **named)
                finally:
                    after(module, result=result)
                return result

            module._compiled_call_impl = watched

        if make is not None:
            kind.compile = compiled
            self._undo_modules.callback(setattr, kind, "compile", make)
            self._undo_modules.callback(is_watched.clear)
        self._undo_modules.callback(register_module_forward_pre_hook(before).remove)
        self._undo_modules.callback(register_module_forward_hook(after, always_call=True).remove)
