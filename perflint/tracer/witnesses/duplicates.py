"""Copies of tensors within a device: whether the copy or its source was written to while the copy lived.

torch counts the writes to a tensor and its views in one version. A tensor without elements can share this version, so
that the memory of the copy is not kept. Writes through NumPy and by the kernels of other libraries are not counted:
copies whose memory they get are unknown. So are writes through `.data`, which the judge looks for in the code.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from perflint.tracer import replacing, simulation
from perflint.tracer.events import Place
from perflint.tracer.recording import Where
from perflint.tracer.witnesses.base import Call, Handler, Witness, shape_of, size_of

OPEN_LIMIT = 10_000
"""Copies that are followed at the same time."""
PLACE_LIMIT = 64
"""Copies of one place that are followed: each takes some tens of microseconds."""


@dataclass(slots=True)
class _Copy:
    """A copy that lives."""

    where: Where
    size: int
    detail: str
    versions: tuple[Any, Any]
    """Tensors without elements that share the versions of the copy and of the source."""
    before: tuple[int, int]
    memories: tuple[int, int]
    """The addresses of the storages of the copy and of the source."""
    is_shared: bool = False
    """True if code outside of torch may write to one of the memories."""
    was_temporary: bool = False
    """True if the memory of the source was freed in the expression that made the copy."""
    dies: tuple[Any, ...] = ()
    """Weak references to the memory of the copy and of the source, which must live as long as this."""


class Duplicates(Witness):
    """Watches functions that copy a tensor within its device."""

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        for name in ("clone", "contiguous", "repeat", "tile"):
            yield torch.Tensor, name, self._copied
        for name in ("clone", "tile", "tensor"):
            yield torch, name, self._copied
        for name in ("cat", "concat"):
            yield torch, name, self._joined
        for name in ("numpy", "__array__", "__dlpack__"):
            yield torch.Tensor, name, self._shared

    def start(self) -> None:
        import torch

        self._open: dict[int, _Copy] = {}
        self._by_memory: dict[int, set[int]] = {}
        self._followed: Counter[Place | None] = Counter()
        self._numbers = itertools.count()
        self._undo = ExitStack()
        # The caller of `__deepcopy__` is the module `copy`: the place is that of `copy.deepcopy(…)`.
        for owner in (torch.Tensor, torch.nn.Parameter):
            self._watch_deepcopy(owner)

    def restart(self) -> None:
        for copy in self._open.values():
            copy.where = replace(copy.where, step=None)

    def stop(self) -> None:
        self._undo.close()
        for number in tuple(self._open):
            self._end(number, "copy.kept")

    def _watch_deepcopy(self, owner: Any) -> None:
        original = owner.__dict__["__deepcopy__"]
        copied = self._guarded(self._deep_copied)
        inside = threading.local()

        @functools.wraps(original)
        def watched(tensor: Any, memo: Any) -> Any:
            if id(tensor) in memo or getattr(inside, "yes", False):
                # Known already, or torch calls it again, for a mode or for a part.
                return original(tensor, memo)
            inside.yes = True
            try:
                result = original(tensor, memo)
            finally:
                inside.yes = False
            copied(tensor, result, sys._getframe(1))
            return result

        replacing.replace(self._undo, owner, "__deepcopy__", watched)

    def _deep_copied(self, source: Any, result: Any, frame: Any) -> None:
        where = self.where(frame)
        if where is not None:
            self._follow(source, result, where)

    def _copied(self, call: Call) -> None:
        import torch

        source = call.args[0] if call.args else call.named.get("data", call.named.get("input"))
        if not isinstance(source, torch.Tensor) or not isinstance(call.result, torch.Tensor):
            return
        if call.result is source:
            self.observe("copy.returned", call.where, detail=shape_of(source))
        else:
            self._follow(source, call.result, call.where)

    def _joined(self, call: Call) -> None:
        tensors = call.argument(0, "tensors")
        if isinstance(tensors, (list, tuple)) and len(tensors) == 1:
            self._follow(tensors[0], call.result, call.where)

    def _follow(self, source: Any, result: Any, where: Where) -> None:
        """Follow a copy until its memory is freed."""
        self.observe("copy.made", where, bytes=size_of(result))
        self._followed[where.place] += 1
        if self._followed[where.place] > PLACE_LIMIT:
            return
        if not (_is_plain(source) and _is_plain(result)) or len(self._open) >= OPEN_LIMIT or _is_watched():
            return
        memory, of_source = result.untyped_storage(), source.untyped_storage()
        if source.is_inference() or result.is_inference() or not of_source.resizable():
            # In inference mode nothing is counted; the memory of another size belongs to NumPy or another process.
            self.observe("copy.unknown", where, bytes=size_of(result), detail=shape_of(result))
            return
        if memory._cdata == of_source._cdata or memory is not result.untyped_storage():
            # It shares memory; or this version of torch (before 2.1) makes a new object each time.
            return
        number = next(self._numbers)
        versions = _version_of(result), _version_of(source)
        before = result._version, source._version
        memories = memory._cdata, of_source._cdata
        copy = _Copy(where, size_of(result), shape_of(result), versions, before, memories)
        ended, left = self._guarded(self._end), self._guarded(self._source_died)
        copy.dies = (
            weakref.ref(memory, lambda _: ended(number, "copy.unwritten")),
            weakref.ref(of_source, lambda _: left(number, sys._getframe())),
        )
        self._open[number] = copy
        for address in memories:
            self._by_memory.setdefault(address, set()).add(number)

    def _shared(self, call: Call) -> None:
        if _is_plain(call.args[0]):
            for number in self._by_memory.get(call.args[0].untyped_storage()._cdata, ()):
                self._open[number].is_shared = True

    def _source_died(self, number: int, frame: Any) -> None:
        copy = self._open.get(number)
        if copy is None or copy.was_temporary:
            return
        here = self.where(frame)
        if here is not None and here.place == copy.where.place:
            copy.was_temporary = True
            self.observe("copy.of-temporary", copy.where, bytes=copy.size, detail=copy.detail)

    def _end(self, number: int, otherwise: str) -> None:
        """The memory of a copy was freed, or the recording ends."""
        copy = self._open.pop(number, None)
        if copy is None:
            return
        written, source_written = (
            version._version != before for version, before in zip(copy.versions, copy.before, strict=True)
        )
        for address in copy.memories:
            numbers = self._by_memory[address]
            numbers.discard(number)
            if not numbers:
                del self._by_memory[address]
        fact = "copy.written" if written else "copy.source-written" if source_written else otherwise
        if fact == "copy.unwritten" and copy.is_shared:
            fact = "copy.unknown"
        self.observe(fact, copy.where, bytes=copy.size, detail=copy.detail)
        if not copy.was_temporary:
            self.observe("copy.of-kept", copy.where, bytes=copy.size, detail=copy.detail)


def _is_watched() -> bool:
    """True if the program sees each operator, as selective checkpoints do: it must not see those of the tracer."""
    import torch

    return torch._C._len_torch_dispatch_stack() > int(simulation.is_on())


def _is_plain(tensor: Any) -> bool:
    """True for a tensor with memory and a version of its own."""
    import torch

    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.is_nested or tensor.is_meta:
        return False
    return tensor.layout is torch.strided and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def _version_of(tensor: Any) -> Any:
    """A tensor without elements that shares the version of another one."""
    import torch

    with torch.no_grad():
        alias = tensor.detach()
        alias.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return alias
