"""Changes to the whole model, made to a copy of it and called with what the program called it with."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from perflint.tracer.events import ModuleCall
from perflint.tracer.experiments.base import Mode, Pair, Run, difference
from perflint.tracer.experiments.copying import copied
from perflint.tracer.experiments.layers import Layer, followers, layers
from perflint.tracer.experiments.live import RootCall
from perflint.tracer.experiments.state import tf32

LAUNCH_BOUND = 0.1
"""The part of a step in which the GPU is idle, from which launching may be what takes the time."""


@dataclass(slots=True)
class Subject:
    """A copy of the model, and how the program called the original."""

    root: RootCall
    calls: Sequence[ModuleCall]
    idle: float | None
    """The part of a step in which the GPU was idle; None if unknown."""
    room: int
    """Bytes that a call of it needs besides."""
    module: Any = field(init=False)
    layers: list[Layer] = field(init=False)

    def __post_init__(self) -> None:
        """Make the copy. Raises NotPossible."""
        self.module = self.root.copy(self.room)
        self.layers = list(layers(self.calls))

    @property
    def mode(self) -> Mode:
        """How it was called."""
        return self.root.mode

    @property
    def is_on_gpu(self) -> bool:
        """True if CUDA is what it runs on."""
        return self.mode.device.startswith("cuda")

    @property
    def is_inference(self) -> bool:
        """True if it is only evaluated."""
        return not self.mode.training and not self.mode.grad

    @property
    def is_launch_bound(self) -> bool:
        """True if the GPU waits for the host in a good part of a step, or may, for all that is known."""
        return self.is_on_gpu and (self.idle is None or self.idle >= LAUNCH_BOUND)

    @property
    def in_float32(self) -> list[Layer]:
        """The layers that multiply in float32."""
        return [
            layer
            for layer in self.layers
            if layer.call.inputs[0].dtype == "float32" and not layer.call.autocast and "Norm" not in layer.kind
        ]

    def other(self) -> Any:
        """Another copy."""
        return copied(self.module, self.room)

    def run(self, module: Any, **mode: Any) -> Run:
        """A call of the model or of another one."""
        return Run(module, replace(self.mode, **mode), self.root.arguments, self.root.named)


class ModelExperiment(Protocol):
    """A change to a model."""

    @property
    def name(self) -> str:
        """As `Experiment.name`."""
        ...

    @property
    def codes(self) -> tuple[str, ...]:
        """As `Experiment.codes`."""
        ...

    @property
    def seconds(self) -> float:
        """About how long it takes before anything can be timed, for each of the model's layers."""
        ...

    def change(self, subject: Subject) -> str:
        """The change, in words; empty if there is nothing to change."""
        ...

    def build(self, subject: Subject) -> Pair:
        """The call to time. Raises NotPossible."""
        ...


class Tf32:
    """Matrix products of float32 in TF32."""

    name = "tf32"
    codes: tuple[str, ...] = ()
    seconds = 0.0

    def change(self, subject: Subject) -> str:
        """The change, if the GPU has TF32 and the program does not use it; else empty."""
        import torch

        if not subject.is_on_gpu or torch.cuda.get_device_capability(subject.mode.device) < (8, 0):
            return ""
        matmul: Any = torch.backends.cuda.matmul
        cudnn: Any = torch.backends.cudnn
        products = any(not layer.is_convolution for layer in subject.in_float32) and not matmul.allow_tf32
        convolutions = any(layer.is_convolution for layer in subject.in_float32) and not cudnn.allow_tf32
        return "TF32 for float32" if products or convolutions else ""

    def build(self, subject: Subject) -> Pair:
        """The same module under another setting."""
        run = subject.run(subject.module)
        return Pair(run, _within(run, _in_tf32), lambda: compared(run, run, _in_tf32))


@contextmanager
def _in_tf32() -> Iterator[None]:
    with tf32(matmul=True, convolution=True):
        yield


class Autocast:
    """bfloat16 autocast for a model in float32."""

    name = "autocast"
    codes: tuple[str, ...] = ()
    seconds = 0.0

    def change(self, subject: Subject) -> str:
        """The change, if there is a product in float32; else empty."""
        return "bfloat16 autocast" if subject.in_float32 and _has_bfloat16(subject) else ""

    def build(self, subject: Subject) -> Pair:
        """The same module, called under autocast."""
        before, after = subject.run(subject.module), subject.run(subject.module, autocast="bfloat16")
        return Pair(before, after, lambda: compared(before, after))


class ChannelsLast:
    """channels_last for a model of convolutions."""

    name = "channels-last"
    codes: tuple[str, ...] = ()
    seconds = 0.0

    def change(self, subject: Subject) -> str:
        """The change, if a convolution gets another layout; else empty."""
        return "channels_last" if _is_contiguous(subject) else ""

    def build(self, subject: Subject) -> Pair:
        """Another copy, its weights and its inputs in that layout."""
        before, after = subject.run(subject.module), _channels_last(subject)
        return Pair(before, after, lambda: compared(before, after))


class AutocastChannelsLast:
    """Both: each without the other often brings little."""

    name = "autocast-channels-last"
    codes: tuple[str, ...] = ()
    seconds = 0.0

    def change(self, subject: Subject) -> str:
        """The change, if each of the two changes something; else empty."""
        both = Autocast().change(subject) and _is_contiguous(subject)
        return "bfloat16 autocast and channels_last" if both else ""

    def build(self, subject: Subject) -> Pair:
        """Another copy in that layout, called under autocast."""
        before, after = subject.run(subject.module), _channels_last(subject, autocast="bfloat16")
        return Pair(before, after, lambda: compared(before, after))


def _has_bfloat16(subject: Subject) -> bool:
    import torch

    return not subject.is_on_gpu or torch.cuda.get_device_capability(subject.mode.device) >= (8, 0)


def _is_contiguous(subject: Subject) -> bool:
    return any(layer.kind == "Conv2d" and layer.call.inputs[0].layout == "contiguous" for layer in subject.layers)


def _channels_last(subject: Subject, **mode: Any) -> Run:
    import torch

    def converted(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.contiguous(memory_format=torch.channels_last).detach() if value.dim() == 4 else value
        if isinstance(value, (tuple, list)):
            return type(value)(converted(item) for item in value)
        return {key: converted(item) for key, item in value.items()} if isinstance(value, dict) else value

    run = subject.run(subject.other().to(memory_format=torch.channels_last), **mode)
    run.arguments, run.named = converted(run.arguments), converted(run.named)
    return run


class FusedNorms:
    """In evaluation mode, all batch norms behind convolutions computed into these."""

    name = "conv-bn-fusion"
    codes: tuple[str, ...] = ()
    seconds = 0.0

    def change(self, subject: Subject) -> str:
        """The change, if there are such norms; else empty."""
        number = len(_norms(subject)) if subject.is_inference else 0
        return f"{number} batch norms fused into the convolutions before them" if number else ""

    def build(self, subject: Subject) -> Pair:
        """Another copy without these norms."""
        import torch
        from torch.nn.utils.fusion import fuse_conv_bn_eval

        changed = subject.other()
        for name, norm in _norms(subject):
            first, second = changed.get_submodule(name), changed.get_submodule(norm)
            transposed = isinstance(first, torch.nn.modules.conv._ConvTransposeNd)
            changed.set_submodule(name, fuse_conv_bn_eval(first, second, transpose=transposed))
            changed.set_submodule(norm, torch.nn.Identity())
        before, after = subject.run(subject.module), subject.run(changed)
        return Pair(before, after, lambda: compared(before, after))


def _norms(subject: Subject) -> list[tuple[str, str]]:
    """The names of convolutions and of the batch norms that take what they put out, and nothing else."""
    import torch

    modules = dict(subject.module.named_modules())
    pairs = list(dict.fromkeys((first.name, norm.name) for first, norm in followers(subject.calls)))
    found = []
    for name, norm in pairs:
        first, second = modules.get(name), modules.get(norm)
        alone = sum(name in pair or norm in pair for pair in pairs if isinstance(modules.get(pair[1]), type(second)))
        convolution = isinstance(first, torch.nn.modules.conv._ConvNd)
        stored = isinstance(second, torch.nn.modules.batchnorm._BatchNorm) and second.track_running_stats
        if name and alone == 1 and convolution and stored and second is not None and second.affine:
            found.append((name, norm))
    return found


class Reparameterisation:
    """In evaluation mode, the branches of blocks such as RepVGG's merged by the model's own method."""

    name = "reparameterisation"
    codes: tuple[str, ...] = ()
    seconds = 0.0

    def change(self, subject: Subject) -> str:
        """The change, if a module has such a method; else empty."""
        number = sum(_merger(module) is not None for module in subject.module.modules())
        return f"branches of {number} blocks merged" if number and subject.is_inference else ""

    def build(self, subject: Subject) -> Pair:
        """Another copy with its branches merged."""
        changed = subject.other()
        for module in list(changed.modules()):
            merge = _merger(module)
            if merge is not None:
                merge()
        before, after = subject.run(subject.module), subject.run(changed)
        return Pair(before, after, lambda: compared(before, after))


def _merger(module: Any) -> Callable[[], object] | None:
    for name in ("reparameterize", "switch_to_deploy"):
        method = getattr(module, name, None)
        if callable(method):
            merge: Callable[[], object] = method
            return merge
    return None


def _within(run: Run, context: Callable[[], Any]) -> Callable[[], object]:
    def changed() -> object:
        with context():
            return run()

    return changed


def compared(before: Run, after: Run, context: Callable[[], Any] | None = None) -> float | None:
    """How different two models' outputs are, with the same random numbers and without dropout."""
    import torch

    outputs = []
    for run, around in ((before, None), (after, context)):
        with _without_dropout(run.module):
            torch.manual_seed(0)
            if around is None:
                outputs.append(copy.copy(run.forward()))
            else:
                with around():
                    outputs.append(run.forward())
    return difference(*outputs)


@contextmanager
def _without_dropout(module: Any) -> Iterator[None]:
    held = [inner for inner in module.modules() if "Dropout" in type(inner).__name__ and inner.training]
    for inner in held:
        inner.training = False
    try:
        yield
    finally:
        for inner in held:
            inner.training = True
