"""The facts of a run that `perflint tune` needs besides those of the probe: calls, waits for data, work of the GPU."""

from __future__ import annotations

import functools
import sys
import time
from typing import Any

from perflint.tracer.importing import when_imported
from perflint.tracer.optimizer_steps import listen
from perflint.tracer.step_calls import StepCalls

_BUSY_STEPS = 3
"""Steps in which the work of the GPU is timed, before the last two of the warm-up."""


class Look:
    """The report of one process. Calls are watched in the first steps, and the GPU later in the warm-up."""

    def __init__(self, root: str, warmup: int) -> None:
        self._calls = StepCalls(root)
        self._warmup = warmup
        self._profiled = max(warmup - 2 - _BUSY_STEPS, 1)
        self._loading: dict[tuple[str, int, int], float] = {}
        self._places: dict[int, tuple[str, int, int]] = {}
        self._made: dict[int, tuple[Any, tuple[str, int]]] = {}
        """Data sets by their identities, with the place of the first loader of each."""
        self._profile: Any = None
        self._busy: float | None = None
        self._began = self._ended = time.perf_counter()

    def start(self) -> None:
        """Watch from here on. Needs torch."""
        from torch.utils.data import dataloader

        listen(lambda optimizer: self._calls.stepped(sys._getframe(1), optimizer))
        self._calls.start()
        when_imported("torch._dynamo.callback", self._calls.spare_compiler)
        base: Any = dataloader._BaseDataLoaderIter
        loader_class: Any = dataloader.DataLoader
        next_batch, make, begin = base.__next__, base.__init__, loader_class._get_iterator

        @functools.wraps(make)
        def made(iterator: Any, loader: Any) -> None:
            make(iterator, loader)
            self._places[id(iterator)] = self._places.get(id(loader), ("", 0, 0))

        @functools.wraps(next_batch)
        def timed(iterator: Any) -> Any:
            began = time.perf_counter()
            try:
                return next_batch(iterator)
            finally:
                self._waited(iterator, began)

        @functools.wraps(begin)
        def begun(loader: Any) -> Any:
            # Workers start here, which takes long.
            began = time.perf_counter()
            try:
                return begin(loader)
            finally:
                self._waited(loader, began)

        self._watch_models()
        loader_class._get_iterator = begun
        base.__next__, base.__init__ = timed, made
        self._watch_loaders(dataloader.DataLoader)

    def _watch_models(self) -> None:
        """Note who clears gradients of models, and who evaluates, often after the steps that are watched."""
        import torch

        kind: Any = torch.nn.Module
        switch, clear = kind.eval, kind.zero_grad

        @functools.wraps(switch)
        def switched(module: Any) -> Any:
            self._calls.switched(sys._getframe(1))
            return switch(module)

        @functools.wraps(clear)
        def cleared(module: Any, *arguments: Any, **keywords: Any) -> Any:
            self._calls.cleared(sys._getframe(1), module)
            return clear(module, *arguments, **keywords)

        kind.eval, kind.zero_grad = switched, cleared

    def _waited(self, loader: Any, began: float) -> None:
        place = self._places.get(id(loader), ("", 0, 0))
        self._loading[place] = self._loading.get(place, 0.0) + time.perf_counter() - began

    def _watch_loaders(self, kind: Any) -> None:
        make = kind.__init__

        @functools.wraps(make)
        def made(loader: Any, *arguments: Any, **keywords: Any) -> None:
            make(loader, *arguments, **keywords)
            caller = sys._getframe(1)
            place = self._calls.place(caller)
            if place is None:
                return
            # A library may make a loader of another one: what counts is the place of the first of its data.
            _, first = self._made.setdefault(id(loader.dataset), (loader.dataset, place))
            self._places[id(loader)] = (*(place if self._calls.is_own(caller) else first), loader.num_workers)

        kind.__init__ = made

    def restart(self) -> None:
        """The steps are counted anew, by a better source."""
        self._calls.start()
        self._loading.clear()

    def step_ended(self, number: int) -> None:
        """The `number`-th step has ended."""
        now = time.perf_counter()
        if number == self._profiled:
            self._calls.stop()
            self._start_profile()
        if number == self._profiled + _BUSY_STEPS:
            self._end_profile()
        if number == self._warmup:
            self._began = time.perf_counter()
            self._loading.clear()
        self._ended = now

    def report(self) -> dict[str, Any]:
        """The facts, as JSON."""
        self._calls.stop()
        took = max(self._ended - self._began, 1e-9)
        return {
            **self._calls.report(),
            "loaders": [[*place, seconds / took] for place, seconds in self._loading.items()],
            "busy_ms": self._busy,
            "distributed": _is_distributed(),
        }

    def _start_profile(self) -> None:
        import torch
        from torch.profiler import ProfilerActivity, profile

        cuda: Any = torch.cuda
        if cuda.is_initialized() and not torch.autograd.profiler._is_profiler_enabled:
            self._profile = profile(activities=[ProfilerActivity.CUDA])
            self._profile.start()

    def _end_profile(self) -> None:
        """Add up the time in which the GPU worked."""
        import torch

        if self._profile is None:
            return
        torch.cuda.synchronize()
        self._profile.stop()
        events = [each for each in self._profile.profiler.kineto_results.events() if "CUDA" in str(each.device_type())]
        spans = sorted((each.start_ns(), each.start_ns() + each.duration_ns()) for each in events)
        total, end = 0, 0
        for first, last in spans:
            total += max(last - max(first, end), 0)
            end = max(end, last)
        self._busy = total / 1e6 / _BUSY_STEPS
        self._profile = None


def _is_distributed() -> bool:
    """True if the process is one of several of a group, as replicas of a model need."""
    import torch

    group: Any = torch.distributed
    return bool(group.is_available() and group.is_initialized() and group.get_world_size() > 1)
