"""The old types of tensors on a GPU, such as `torch.cuda.FloatTensor`."""

from __future__ import annotations

from typing import Any

from perflint.tracer.simulation.marks import Replacements, is_on_gpu, noted


def replacements() -> Replacements:
    """The types of the GPU by what is to stand in for them. Needs torch."""
    import torch

    found: Replacements = {}
    for name, original in tuple(vars(torch.cuda).items()):
        if name.endswith("Tensor") and hasattr(torch, name):
            noted(found, original, _type(name, getattr(torch, name)))
    return found


def _type(name: str, host: Any) -> Any:
    import torch

    class Kind(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, torch.Tensor) and value.dtype is host.dtype and is_on_gpu(value)

        def __call__(cls, *args: Any) -> Any:
            if all(isinstance(size, int) for size in args):
                return torch.empty(args, dtype=host.dtype, device="cuda")
            if isinstance(args[0], torch.Size):
                return torch.empty(args[0], dtype=host.dtype, device="cuda")
            return torch.tensor(args[0], dtype=host.dtype, device="cuda")

    return Kind(name, (), {"dtype": host.dtype, "is_cuda": True, "__module__": "torch.cuda"})
