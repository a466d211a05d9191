"""Reads what programs write for a device."""

from __future__ import annotations

import os
from typing import Any

from perflint.tracer.simulation.marks import At, is_on_gpu


def number() -> int:
    """The number of the one GPU that a process has: under torchrun each has its own."""
    return _of_environment("LOCAL_RANK", 0)


def count() -> int:
    """How many GPUs there are: as many as processes of torchrun."""
    return max(_of_environment("LOCAL_WORLD_SIZE", 1), number() + 1)


def _of_environment(name: str, default: int) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdecimal() else default


def gpu() -> Any:
    """The device that is simulated."""
    import torch

    return torch.device("cuda", number())


def cpu() -> Any:
    """The host."""
    import torch

    return torch.device("cpu")


def is_device(value: Any) -> bool:
    """True if an argument names a device: a number is one of a GPU."""
    import torch

    return isinstance(value, (torch.device, str, int)) and not isinstance(value, bool)


def place_named(device: Any) -> At | None:
    """The place of a device; None for one of another kind, such as `meta`. Raises RuntimeError as torch does."""
    import torch

    if isinstance(device, int):
        device = torch.device("cuda", device)
    device = torch.device(device)
    if device.type == "cuda":
        check_number(device.index or 0)
        cuda: Any = torch.cuda
        cuda.init()
        return At.GPU
    return At.HOST if device.type == "cpu" else None


def check_number(wanted: int) -> None:
    """Raise RuntimeError for a GPU that there is not."""
    if wanted >= count():
        raise RuntimeError(f"CUDA error: invalid device ordinal (perflint trace --simulate has {count()} GPU)")


def device_of(tensor: Any, real: Any) -> Any:
    """The device that a tensor would be on, where `real` is what torch says."""
    return gpu() if real.type == "cpu" and is_on_gpu(tensor) else real


def device_of_storage(storage: Any, real: Any) -> Any:
    """The device that a storage would be on, where `real` is what torch says."""
    return gpu() if real.type == "cpu" and getattr(storage, "perflint_at", At.HOST) is At.GPU else real
