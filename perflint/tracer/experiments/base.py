"""Shared parts of experiments: calls of a model, and comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from perflint.tracer.events import ModuleCall, TensorFacts
from perflint.tracer.modules import tensors

if TYPE_CHECKING:
    import torch


COMPARED = 1 << 25
"""Numbers of a tensor, about."""


class NotPossible(RuntimeError):
    """Why an experiment cannot be done."""


@dataclass(frozen=True, slots=True)
class Mode:
    """How the program called a module."""

    device: str
    autocast: str
    """Its dtype; empty where it is off."""
    training: bool
    grad: bool
    inference: bool
    backward: bool
    """True if gradients flowed through it."""

    @classmethod
    def of(cls, call: ModuleCall) -> Mode:
        """That of a recorded call."""
        seen = [*call.inputs, *call.outputs]
        device = seen[0].device if seen else "cpu"
        backward = call.grad and call.training and any(output.requires_grad for output in call.outputs)
        return cls(device, call.autocast, call.training, call.grad, call.inference, backward)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """In this mode."""
        import torch

        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode(self.inference))
            if not self.inference:
                stack.enter_context(torch.set_grad_enabled(self.grad))
            if self.autocast:
                dtype = getattr(torch, self.autocast)
                stack.enter_context(torch.autocast(torch.device(self.device).type, dtype=dtype))
                # Where the program itself is inside autocast, the casts of weights would stay.
                stack.callback(torch.clear_autocast_cache)
            yield


class Run:
    """One call of a module, and the backward pass where the program makes one."""

    def __init__(self, module: Any, mode: Mode, arguments: Sequence[Any], named: dict[str, Any] | None = None) -> None:
        self.module = module
        self.mode = mode
        self.arguments = tuple(arguments)
        self.named = named or {}
        self._gradients: list[torch.Tensor] | None = None

    def __call__(self) -> Any:
        """The output of the module."""
        if not self.mode.backward:
            return self.forward()
        import torch

        self.clear()
        output = self.forward()
        ends = _ends(output)
        if self._gradients is None:
            self._gradients = [torch.randn_like(end) if end.dim() else torch.ones_like(end) for end in ends]
        torch.autograd.backward(ends, self._gradients)
        return output

    def forward(self) -> Any:
        """The output of the module, without a backward pass."""
        with self.mode.entered():
            return self.module(*self.arguments, **self.named)

    def clear(self) -> None:
        """Forget the gradients, as `zero_grad` does."""
        for leaf in (*self.module.parameters(), *tensors((self.arguments, self.named))):
            leaf.grad = None


def _ends(output: Any) -> list[torch.Tensor]:
    """The tensors from which the backward pass starts: a loss among the outputs, or all of them."""
    found = [tensor for tensor in tensors(output) if tensor.requires_grad]
    scalars = [tensor for tensor in found if not tensor.dim()]
    if not found:
        raise NotPossible("no output of the model has a gradient")
    return scalars or found


@dataclass(frozen=True, slots=True)
class Pair:
    """The timed calls, and the difference of their outputs."""

    before: Callable[[], object]
    after: Callable[[], object]
    difference: Callable[[], float | None]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change to layers that are equal."""

    name: str
    codes: tuple[str, ...]
    calls: tuple[ModuleCall, ...]
    """Of the layers; the first stands for all."""
    subject: str
    """Without the names of the layers."""
    change: str
    work: float
    """About how much is computed per step, to do what matters first."""
    build: Callable[[], Pair]


class LayerExperiment(Protocol):
    """A change to layers, found in records."""

    @property
    def name(self) -> str:
        """As `Experiment.name`."""
        ...

    @property
    def codes(self) -> tuple[str, ...]:
        """As `Experiment.codes`."""
        ...

    def propose(self, calls: Sequence[ModuleCall]) -> Iterator[Proposal]:
        """The change that it would make, for layers that are equal together."""
        ...


def difference(before: Any, after: Any) -> float | None:
    """The largest difference between tensors that should be equal, relative to the largest value.

    Those of `after` may be larger: what is beyond the size of `before` is left out. None without
    tensors of numbers, or where they do not correspond.
    """
    worst: float | None = None
    for one, other in zip(tensors(before), tensors(after), strict=False):
        if not one.is_floating_point() or one.dim() != other.dim() or not one.numel():
            continue
        if any(new < old for old, new in zip(one.shape, other.shape, strict=True)):
            return None
        old = one.detach()[tuple(slice(size) for size in _compared(one))].float()
        new = other.detach()[tuple(slice(size) for size in old.shape)].float()
        off = float((old - new).abs().max()) / (float(old.abs().max()) or 1.0)
        worst = max(worst or 0.0, off)
    # What is not finite has no difference that could be written.
    return worst if worst is not None and worst < float("inf") else None


def _compared(tensor: torch.Tensor) -> tuple[int, ...]:
    """The sizes of the compared part; empty for a tensor without dimensions, which cannot be sliced."""
    if not tensor.dim():
        return ()
    rows = max(1, COMPARED // max(tensor[0].numel(), 1))
    return (min(rows, tensor.shape[0]), *tensor.shape[1:])


def made(facts: TensorFacts, high: int = 2) -> torch.Tensor:
    """A tensor of recorded facts with random numbers; whole ones are from 0 to `high`, exclusive."""
    import torch

    dtype = getattr(torch, facts.dtype)
    if dtype.is_floating_point or dtype.is_complex:
        tensor = torch.randn(facts.shape, dtype=torch.float32, device=facts.device).to(dtype)
    else:
        tensor = torch.randint(0, high, facts.shape, device=facts.device).to(dtype)
    if facts.layout in ("channels_last", "channels_last_3d"):
        tensor = tensor.contiguous(memory_format=getattr(torch, facts.layout))
    return tensor.requires_grad_(facts.requires_grad)
