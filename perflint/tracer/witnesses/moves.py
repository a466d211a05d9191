"""Modules that are moved or cast, and files that are loaded: whether that changed anything."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, islice
from types import CodeType, FrameType
from typing import Any

from perflint.tracer.recording import Where
from perflint.tracer.witnesses._around import wrap
from perflint.tracer.witnesses.base import Witness, size_of

CALLS = 1000
"""Calls of one place that are watched."""
TENSOR_LIMIT = 2000


@dataclass(slots=True)
class _Running:
    """A call that runs."""

    where: Where
    module: Any
    """The module, or the name of a file."""
    before: tuple[Any, ...]
    began: float


class Moves(Witness):
    """Watches `Module.to` and its like, and `torch.load`."""

    def start(self) -> None:
        import torch

        self._undo = ExitStack()
        self._seen: Counter[tuple[CodeType, int]] = Counter()
        self._loaded: dict[str, int] = {}
        self._enter, self._leave = self._guarded(self._entered), self._guarded(self._left)
        for name in ("to", "cuda", "cpu", "half", "float", "bfloat16", "double", "type"):
            wrap(self._undo, torch.nn.Module, name, self._begin, self._end)
        wrap(self._undo, torch, "load", self._begin, self._end)

    def stop(self) -> None:
        self._undo.close()

    def _begin(self, args: tuple[Any, ...], named: Mapping[str, Any], frame: FrameType) -> list[_Running] | None:
        if not self.locator.is_outside_torch(frame):
            return None
        key = (frame.f_code, frame.f_lasti)
        self._seen[key] += 1
        begun: list[_Running] = []
        if self._seen[key] <= CALLS:
            self._enter(begun, args[0] if args else named.get("f"), frame)
        return begun

    def _end(self, begun: list[_Running], result: Any) -> None:
        if begun and result is not None:
            self._leave(begun[0], time.perf_counter())

    def _entered(self, begun: list[_Running], moved: Any, frame: FrameType) -> None:
        import torch

        where = self.where(frame)
        is_module = isinstance(moved, torch.nn.Module)
        if where is not None and (is_module or isinstance(moved, (str, os.PathLike))):
            before = tuple(map(_placed, _tensors(moved))) if is_module else ()
            begun.append(_Running(where, moved, before, time.perf_counter()))

    def _left(self, call: _Running, ended: float) -> None:
        import torch

        ms = (ended - call.began) * 1000
        if not isinstance(call.module, torch.nn.Module):
            path = os.path.abspath(os.fspath(call.module))
            changed = os.stat(path).st_mtime_ns if os.path.exists(path) else 0
            fact = "load.again" if self._loaded.get(path) == changed else "load.first"
            self._loaded[path] = changed
            self.observe(fact, call.where, ms=ms, detail=os.path.basename(path))
            return
        now = list(_tensors(call.module))
        sizes = [size_of(each) for each, then in zip(now, call.before, strict=False) if _placed(each) != then]
        fact = "module.moved" if sizes else "module.in-place"
        size = sum(sizes) if sizes else sum(map(size_of, now))
        self.observe(fact, call.where, bytes=size, ms=ms, detail=type(call.module).__name__)


def _tensors(module: Any) -> list[Any]:
    return list(islice(chain(module.parameters(), module.buffers()), TENSOR_LIMIT))


def _placed(tensor: Any) -> tuple[Any, Any]:
    return tensor.device, tensor.dtype
