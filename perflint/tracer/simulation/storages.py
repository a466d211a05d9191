"""The device properties of storages, and the methods that move them, which saving and loading use."""

from __future__ import annotations

from typing import Any

from perflint.tracer.simulation.devices import device_of_storage, place_named
from perflint.tracer.simulation.marks import At, wait


def install() -> None:
    """Put the property and the methods in place. Needs torch."""
    import torch

    cls: Any = torch.UntypedStorage
    device, clone, write = cls.device.__get__, cls.clone, cls._write_file

    def copied(storage: Any, at: At) -> Any:
        held = storage.__dict__.pop("perflint_at", None)
        try:
            result = clone(storage)
        finally:
            if held is not None:
                storage.perflint_at = held
        result.perflint_at = at
        return result

    def cloned(storage: Any) -> Any:
        return copied(storage, _at(storage))

    def to_cpu(storage: Any) -> Any:
        if _at(storage) is not At.GPU:
            return storage
        wait()
        return copied(storage, At.HOST)

    def to_gpu(storage: Any, device: Any = None, non_blocking: bool = False) -> Any:
        place_named("cuda" if device is None else device)
        if _at(storage) is At.GPU:
            return storage
        if not non_blocking:
            wait()
        return copied(storage, At.GPU)

    def to(storage: Any, *, device: Any, non_blocking: bool = False) -> Any:
        target = place_named(device)
        if target is None:
            return move(storage, device=device, non_blocking=non_blocking)
        if target is _at(storage):
            return storage
        if not non_blocking:
            wait()
        return copied(storage, target)

    def write_file(storage: Any, *arguments: Any) -> Any:
        if _at(storage) is At.GPU:
            wait()
        return write(storage, *arguments)

    move = cls.to
    cls.device = property(lambda storage: device_of_storage(storage, device(storage)))
    cls.clone, cls.cpu, cls.cuda, cls.to, cls._write_file = cloned, to_cpu, to_gpu, to, write_file


def _at(storage: Any) -> At:
    at: At = getattr(storage, "perflint_at", At.HOST)
    return at
