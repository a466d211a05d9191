"""What the parameters of generated code get, and the contexts in which it runs.

Each operand is chosen by a row of axes (`AXES`), such as a dtype and a layout, and made anew for each run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from tests.fixes.matrix.templates import PARAMETERS

Row = Mapping[str, str]

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "complex64": torch.complex64,
    "int64": torch.int64,
    "int32": torch.int32,
    "uint8": torch.uint8,
    "bool": torch.bool,
}
SHAPES = {
    "matrix": (2, 3),
    "square": (3, 3),
    "vector": (6,),
    "number": (),
    "row": (1, 4),
    "cube": (2, 3, 4),
    "empty": (0, 3),
}


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone()


def _transposed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.mT.contiguous().mT if tensor.dim() > 1 else tensor.clone()


def _sliced(tensor: torch.Tensor) -> torch.Tensor:
    return torch.stack([tensor, tensor], -1)[..., 0]


def _expanded(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[:1].clone().expand(tensor.shape) if tensor.dim() else tensor.clone()


def _part(tensor: torch.Tensor) -> torch.Tensor:
    return torch.stack([tensor, tensor])[1]


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": _plain,
    "transposed": _transposed,
    "sliced": _sliced,
    "expanded": _expanded,
    "part": _part,
}
HISTORIES = ("none", "leaf", "computed", "view of computed", "parameter", "inference")
PLACES = ("cuda", "cpu")
_SPECIAL = (0.0, -0.0, float("nan"), float("inf"), -1.5, 0.1)


def tensor(row: Row) -> torch.Tensor:
    """A tensor of a dtype, shape, layout, history and place."""
    dtype, shape = DTYPES[row["dtype"]], SHAPES[row["shape"]]
    with torch.inference_mode(row["history"] == "inference"):
        numbers = torch.arange(torch.Size(shape).numel(), device=row["place"])
        # Positions are not negative.
        values = (numbers * 7 % 11 - (0 if row["dtype"] == "int64" else 3)) / 2
        if row["dtype"] == "float32":
            # Values in which every bit counts.
            values = torch.tensor(_SPECIAL, device=row["place"])[numbers % len(_SPECIAL)] + values * 0
        made = LAYOUTS[row["layout"]](values.reshape(shape).to(dtype))
        return _with_history(made, row["history"])


def _with_history(made: torch.Tensor, history: str) -> torch.Tensor:
    if history in ("none", "inference") or not (made.is_floating_point() or made.is_complex()):
        return made
    if history == "parameter":
        return torch.nn.Parameter(made)
    made.requires_grad_()
    if history == "leaf":
        return made
    computed = made * 1
    return computed[...] if history == "view of computed" else computed


class Places:
    """An object whose methods change what its attributes give; it notes in which order they were called."""

    def __init__(self) -> None:
        self.n = 0
        self.device = torch.device("cpu")
        self.calls: list[str] = []

    def width(self) -> int:
        """A size."""
        self.calls.append("width")
        self.n, self.device = 1, torch.device("cuda")
        return 2

    def bump(self) -> float:
        """A number."""
        self.calls.append("bump")
        self.n = 1
        return 9.0

    def next_device(self) -> torch.device:
        """A device."""
        self.calls.append("next_device")
        self.n = 2
        return self.device


TENSOR: dict[str, Sequence[str]] = {
    "dtype": tuple(DTYPES),
    "shape": tuple(SHAPES),
    "layout": tuple(LAYOUTS),
    "history": HISTORIES,
    "place": PLACES,
}
NUMBERS: dict[str, dict[str, object]] = {
    "int": {"0": 0, "1": 1, "2": 2, "-1": -1, "300": 300, "2**40": 2**40},
    "index": {"0": 0, "1": 1, "-1": -1, "9": 9},
    "size": {"6": 6, "1": 1, "0": 0},
    "float": {str(number): number for number in (0.1, -0.0, float("nan"), float("inf"), -1e30, 2.5)} | {"7": 7},
    "bool": {"True": True, "False": False},
    "device": {
        "cuda": torch.device("cuda"),
        "cuda:0": torch.device("cuda", 0),
        "cpu": torch.device("cpu"),
        "text": "cuda",
        "host text": "cpu",
        "number": 0,
        "None": None,
    },
    "gpu": {"0": 0},
    "anything": {"None": None, "0": 0, "text": "cuda:0", "device": torch.device("cuda")},
}
"""Operands that are no tensors, by kind and name."""

_OF_KIND: dict[str, dict[str, Sequence[str]]] = {
    "tensor": TENSOR,
    "vector": TENSOR | {"shape": ("vector",)},
    "matrix": TENSOR | {"shape": ("matrix", "square", "empty")},
    "cube": TENSOR | {"shape": ("cube",)},
    "places": {},
}


def axes(parameter: str) -> dict[str, Sequence[str]]:
    """The axes of a parameter."""
    kind = PARAMETERS[parameter][1]
    found = _OF_KIND.get(kind, {"value": tuple(NUMBERS.get(kind, ()))})
    return {f"{parameter}.{axis}": names for axis, names in found.items()}


def operand(parameter: str, row: Row) -> Any:
    """What a parameter gets."""
    kind = PARAMETERS[parameter][1]
    own = {axis.partition(".")[2]: name for axis, name in row.items() if axis.startswith(f"{parameter}.")}
    if kind == "places":
        return Places()
    return NUMBERS[kind][own["value"]] if kind in NUMBERS else tensor(own)


@contextlib.contextmanager
def _nested_autocast() -> Iterator[None]:
    with torch.autocast("cuda", torch.float16), torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
        yield


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


CONTEXTS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "plain": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cuda", torch.bfloat16),
    "autocast of the host": lambda: torch.autocast("cpu", torch.bfloat16),
    "nested autocast": _nested_autocast,
    "float64 by default": lambda: _default_dtype(torch.float64),
    "bfloat16 by default": lambda: _default_dtype(torch.bfloat16),
    "float16 by default": lambda: _default_dtype(torch.float16),
    "cuda by default": lambda: torch.device("cuda"),
}
