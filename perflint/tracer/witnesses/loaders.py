"""Loaders: the options in force, the time that loops wait for batches, and where the batches are."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any

from perflint.tracer.events import Place
from perflint.tracer.identity import ByIdentity
from perflint.tracer.modules import tensors
from perflint.tracer.replacing import replace
from perflint.tracer.witnesses.base import Call, Handler, Witness, size_of

TENSORS = 64
"""Tensors of a batch that are looked at."""
_FACTORIES = "tensor as_tensor zeros ones empty full rand randn randint arange linspace eye from_numpy".split()


@dataclass(slots=True)
class _Epoch:
    """One iteration over a loader."""

    made: Place
    pins: bool
    by: str
    """The data set of its items, and the process that prepares its batches."""
    batches: int = 0
    first: int | None = None
    last: int | None = None


class Loaders(Witness):
    """Watches loaders of batches, at the places where they are constructed."""

    def start(self) -> None:
        from torch.utils.data import DataLoader
        from torch.utils.data import dataloader as module

        self._undo = ExitStack()
        self._epochs: ByIdentity[_Epoch] = ByIdentity()
        self._known: ByIdentity[bool] = ByIdentity()
        self._fetching = False
        self._around(DataLoader, "_get_iterator", self._guarded(self._created))
        self._around(DataLoader, "__iter__", self._guarded(self._iterated))
        for kind in (module._SingleProcessDataLoaderIter, module._MultiProcessingDataLoaderIter):
            self._around(kind, "_next_data", self._guarded(self._given), fetches=True)

    def stop(self) -> None:
        self._undo.close()

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch
        from torch.nn.utils import rnn

        for name in ("to", "cuda"):
            yield torch.Tensor, name, self._prepared
        for name in _FACTORIES:
            yield torch, name, self._prepared
        yield rnn, "pad_sequence", self._padded

    def _around(self, owner: Any, name: str, note: Callable[..., None], fetches: bool = False) -> None:
        """Have `note` told of each call of a method: the object, the result or None, and the time."""
        original = getattr(owner, name)

        @functools.wraps(original)
        def watched(this: Any, *args: Any, **named: Any) -> Any:
            began = time.perf_counter()
            was, self._fetching = self._fetching, fetches
            try:
                result = original(this, *args, **named)
            except StopIteration:
                if fetches:
                    note(this, None, 0.0)
                raise
            finally:
                self._fetching = was
            note(this, result, (time.perf_counter() - began) * 1000)
            return result

        replace(self._undo, owner, name, watched)

    def _created(self, loader: Any, iterator: Any, ms: float) -> None:
        """A loader has created an iterator, and its workers with it."""
        where = self.made(loader)
        if where is None or where.place is None:
            return
        by = f"{_data_set(loader)}, by {'workers' if loader.num_workers else 'the process that iterates'}"
        self._epochs[iterator] = _Epoch(where.place, bool(loader.pin_memory), by)
        if loader.num_workers:
            self.observe("loader.workers-started", where, ms=ms, detail=_options(loader))

    def _iterated(self, loader: Any, iterator: Any, _: float) -> None:
        """A program starts to go over a loader."""
        where = self.made(loader)
        if where is None:
            return
        is_new = loader not in self._known
        self._known[loader] = True
        self.observe("loader.new" if is_new else "loader.again", where, detail=_options(loader))
        epoch = self._epochs.get(iterator)
        if not loader.num_workers:
            self.observe("loader.no-workers", where, detail=_options(loader))
        elif epoch is not None and not is_new and loader.persistent_workers:
            self.observe("loader.workers-kept", where, detail=_options(loader))
        if epoch is not None:
            epoch.batches, epoch.first, epoch.last = 0, None, None

    def _given(self, iterator: Any, batch: Any, ms: float) -> None:
        """An iterator has returned a batch, or None at the end."""
        epoch = self._epochs.get(iterator)
        if epoch is None:
            return
        where = self._recording.now(epoch.made)
        if batch is None:
            self._ended(epoch)
            return
        found = list(islice(tensors(batch), TENSORS))
        sizes = [int(tensor.shape[0]) for tensor in found if tensor.dim()]
        if sizes:
            epoch.last = sizes[0]
            epoch.first = sizes[0] if epoch.first is None else epoch.first
        epoch.batches += 1
        size = sum(map(size_of, found))
        fact = "loader.first-batch" if epoch.batches == 1 else "loader.batch"
        self.observe(fact, where, bytes=size, ms=ms, detail=epoch.by)
        if found:
            self._placed(epoch, found, size)

    def _placed(self, epoch: _Epoch, found: list[Any], size: int) -> None:
        where = self._recording.now(epoch.made)
        kinds = {tensor.device.type for tensor in found}
        if "cuda" in kinds:
            self.observe("loader.on-gpu", where, bytes=size)
        elif kinds == {"cpu"}:
            pinned = epoch.pins or all(_is_pinned(tensor) for tensor in found)
            self.observe("loader.pinned" if pinned else "loader.pageable", where, bytes=size)

    def _ended(self, epoch: _Epoch) -> None:
        if epoch.first is None or epoch.last is None or epoch.batches < 2:
            return
        is_smaller = epoch.last < epoch.first
        detail = f"{epoch.last} instead of {epoch.first}" if is_smaller else f"{epoch.batches} of {epoch.first}"
        where = self._recording.now(epoch.made)
        self.observe("loader.smaller-batch" if is_smaller else "loader.even-batches", where, detail=detail)

    def _prepared(self, call: Call) -> None:
        if self._fetching and hasattr(call.result, "device"):
            moved = call.result.device.type == "cuda" and call.result is not call.args[0]
            self.observe("item.to-gpu" if moved else "item.on-host", call.where, bytes=size_of(call.result))

    def _padded(self, call: Call) -> None:
        lengths = [len(each) for each in call.argument(0, "sequences")]
        longest = max(lengths, default=0)
        if longest:
            share = 1 - sum(lengths) / (len(lengths) * longest)
            detail = f"{share:.0%} of {len(lengths)} × {longest}"
            self.observe("padding.sequences", call.where, bytes=size_of(call.result), detail=detail)


def _options(loader: Any) -> str:
    names = ("batch_size", "num_workers", "pin_memory", "persistent_workers", "drop_last")
    return ", ".join([f"dataset={_data_set(loader)}", *(f"{name}={getattr(loader, name, None)}" for name in names)])


def _data_set(loader: Any) -> str:
    """The class of a loader's data set, with those that it wraps: `Subset of Images`."""
    names: list[str] = []
    inner = loader.dataset
    while inner is not None and len(names) < 4:
        names.append(type(inner).__name__)
        inner = vars(inner).get("dataset") if hasattr(inner, "__dict__") else None
    return " of ".join(names)


def _is_pinned(tensor: Any) -> bool:
    """True if a tensor is in pinned memory; CUDA is not initialised for the question."""
    import torch

    is_initialized: Any = torch.cuda.is_initialized
    return bool(is_initialized() and tensor.is_pinned())
