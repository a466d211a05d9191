"""Layers of torch.nn as the records say that they are: read from their settings, and built again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from perflint.tracer.events import ModuleCall
from perflint.tracer.experiments.base import Mode, made

SHOWN = 3
"""Settings of a layer in a text."""
_KINDS = {
    "linear": ("Linear",),
    "conv": tuple(f"Conv{way}{n}d" for way in ("", "Transpose") for n in (1, 2, 3)),
    "batchnorm": tuple(f"BatchNorm{n}d" for n in (1, 2, 3)),
    "instancenorm": tuple(f"InstanceNorm{n}d" for n in (1, 2, 3)),
    "activation": ("MultiheadAttention", "ReLU", "ReLU6", "SiLU", "GELU", "Hardswish"),
    "pooling": ("MaxPool2d", "AvgPool2d"),
}
_TYPES = {f"torch.nn.modules.{file}.{name}": name for file, names in _KINDS.items() for name in names}
_NAMES: dict[str, tuple[str, ...]] = {
    "Linear": ("in_features", "out_features"),
    "Conv": ("in_channels", "out_channels"),
    "BatchNorm": ("num_features",),
    "InstanceNorm": ("num_features",),
    "MultiheadAttention": ("embed_dim", "num_heads"),
}
"""The settings that `extra_repr` shows without a name, by the start of the layer's name."""
_DEFAULTS = {"bias": True, "groups": 1, "padding_mode": "zeros", "affine": True, "track_running_stats": True}


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer that can be built again."""

    call: ModuleCall
    kind: str
    """The class's name."""
    settings: dict[str, Any]
    """The arguments for its constructor."""

    def __getitem__(self, name: str) -> Any:
        return self.settings[name] if name in self.settings else _DEFAULTS[name]

    @property
    def is_convolution(self) -> bool:
        """True if it is a convolution, a transposed one too."""
        return self.kind.startswith("Conv")

    @property
    def is_linear(self) -> bool:
        """True if it is a linear layer."""
        return self.kind == "Linear"

    @property
    def sizes(self) -> tuple[str, str]:
        """The names of what it takes in and what it puts out."""
        return ("in_features", "out_features") if self.is_linear else ("in_channels", "out_channels")

    @property
    def text(self) -> str:
        """`Conv2d(3, 64, kernel_size=(7, 7), …)`."""
        parts = _PARTS.split(self.call.settings)
        return f"{self.kind}({', '.join(parts[:SHOWN])}{', …' if len(parts) > SHOWN else ''})"

    @property
    def work(self) -> float:
        """Multiplications of a step, roughly."""
        outputs = sum(prod(output.shape) for output in self.call.outputs)
        inner = 1.0
        if self.is_linear:
            inner = self["in_features"]
        elif self.is_convolution:
            inner = self["in_channels"] / self["groups"] * prod(_tuple(self["kernel_size"]))
        return outputs * inner * per_step(self.call)

    def build(self, **changed: Any) -> Any:
        """A `torch.nn` module with these settings, some changed, in the mode and with the types of the record."""
        import torch

        call = self.call
        mode = Mode.of(call)
        # Under autocast weights are as a rule those of float32, whatever the input is.
        numbers = [facts for facts in call.inputs if facts.dtype in _FLOATS]
        dtype = getattr(torch, "float32" if call.autocast or not numbers else numbers[0].dtype)
        module = getattr(torch.nn, self.kind)(**self.settings | changed)
        module = module.to(device=torch.device(mode.device), dtype=dtype).train(mode.training)
        layout = call.inputs[0].layout if call.inputs else ""
        if layout in ("channels_last", "channels_last_3d"):
            module = module.to(memory_format=getattr(torch, layout))
        return module

    def inputs(self) -> list[Any]:
        """Random tensors as the recorded ones were."""
        return [made(facts) for facts in self.call.inputs]


_PARTS = re.compile(r", (?![^(]*\))")
"""Commas that are not inside brackets."""
_FLOATS = ("float32", "float16", "bfloat16", "float64")


def layer(call: ModuleCall) -> Layer | None:
    """The layer of a record; None where it is of another kind, or of settings that cannot be read."""
    kind = _TYPES.get(call.type)
    settings = read_settings(call.settings, kind) if kind is not None else None
    if kind is None or settings is None or not call.inputs or not call.outputs:
        return None
    return Layer(call, kind, settings)


def read_settings(text: str, kind: str) -> dict[str, Any] | None:
    """The settings in `extra_repr`, as arguments of the constructor; None if they cannot be parsed."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names = next((names for start, names in _NAMES.items() if kind.startswith(start)), ())
    if not isinstance(call, ast.Call) or len(call.args) > len(names):
        return None
    given = [*zip(names, call.args, strict=False), *((keyword.arg or "", keyword.value) for keyword in call.keywords)]
    settings = {}
    for name, value in given:
        try:
            # Words stand without quotes: `padding_mode=reflect`.
            settings[name] = value.id if isinstance(value, ast.Name) else ast.literal_eval(value)
        except (ValueError, TypeError, RecursionError, MemoryError):
            return None
    return settings if all(type(settings.get(name)) is int for name in names) and "" not in settings else None


def layers(calls: Iterable[ModuleCall]) -> Iterator[Layer]:
    """The records that are layers which can be built again."""
    for call in calls:
        found = layer(call)
        if found is not None:
            yield found


def grouped(found: Iterable[Layer]) -> list[tuple[Layer, tuple[ModuleCall, ...]]]:
    """The layers that differ, with the calls of those that are equal to each."""
    groups: dict[object, list[Layer]] = {}
    for each in found:
        groups.setdefault(identity(each.call), []).append(each)
    return [(group[0], tuple(each.call for each in group)) for group in groups.values()]


def identity(call: ModuleCall) -> object:
    """The key of calls that take equally long."""
    how = (call.training, call.grad, call.inference, call.autocast)
    return (call.type, call.settings, call.inputs, call.outputs, *how)


def followers(calls: Sequence[ModuleCall]) -> Iterator[tuple[ModuleCall, ModuleCall]]:
    """Each call whose first input is what another module put out, as it put it out, behind that other's."""
    latest: dict[str, ModuleCall] = {}
    for call in calls:
        first = latest.get(call.follows) if call.follows else None
        if first is not None and call.inputs[:1] and _same(first, call):
            yield first, call
        latest[call.name] = call


def _same(first: ModuleCall, second: ModuleCall) -> bool:
    return bool(first.outputs) and first.outputs[0] == second.inputs[0] and first.steps == second.steps


def per_step(call: ModuleCall) -> float:
    """How often a step makes a call."""
    return call.count / max(call.steps, 1)


def _tuple(value: Any) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)
