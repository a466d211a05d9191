"""The base of all witnesses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

from perflint.semantics.facts.tables import table
from perflint.tracer.events import Place
from perflint.tracer.places import Locator
from perflint.tracer.recording import Recording, Where


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of torch that has returned."""

    function: Any
    args: tuple[Any, ...]
    named: Mapping[str, Any]
    result: Any
    where: Where
    """The call in the user's code, or in an installed package that is not torch."""
    ms: float = 0.0
    """How long the call took on the CPU."""

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument by position, else by name."""
        return self.args[position] if position < len(self.args) else self.named.get(name, default)


Handler = Callable[[Call], None]
Guard = Callable[[Callable[..., object]], Callable[..., None]]
Made = Callable[[Any], Place | None]


@cache
def _facts() -> Mapping[str, Mapping[str, str]]:
    return table(Path(__file__).with_name("facts.toml"))


class Witness:
    """Watches one kind of behaviour from `start` to `stop`, and records its outcomes with `observe`."""

    facts: ClassVar[Mapping[str, str]]
    """The facts that it may record, with their meaning: the table of its name in `facts.toml`."""
    stays: ClassVar[bool] = False
    """True to watch until the program ends, because what it watches often comes after the recorded steps. Handlers
    of `calls` are called until the last recorded step only."""

    def __init_subclass__(cls) -> None:
        cls.facts = _facts().get(cls.__name__, {})

    def __init__(self, recording: Recording, guarded: Guard, made: Made) -> None:
        self._recording = recording
        self._guarded = guarded
        """Wraps callbacks: their faults are reported as the tracer's, and their own use of torch is not watched."""
        self._made = made
        """The place of the user's code that constructed a module, an optimizer or a loader."""

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        """Functions of torch, each as its owner and its name there, with the handlers of their calls. Needs torch.

        The handlers get the calls that the program or a library makes, after they have returned, but no calls inside
        of torch and in compiled code. Built-in functions of the module `torch`, such as `torch.cat`, are watched in
        the first recorded steps only, except in a simulation.
        """
        return iter(())

    def start(self) -> None:
        """Watch from here on: torch has just been imported."""

    def end_step(self) -> None:
        """A recorded step ended."""

    def restart(self) -> None:
        """The steps so far were none."""

    def stop(self) -> None:
        """Watch no longer; record the outcomes that are still open."""

    def observe(
        self, fact: str, where: Where, *, bytes: int = 0, ms: float = 0.0, detail: str = "", count: int = 1
    ) -> None:
        """Record one outcome, or some equal ones. `where` is the place and time of the call, which may be long past."""
        assert fact in self.facts, fact
        self._recording.observe(fact, where, bytes=bytes, ms=ms, detail=detail, count=count)

    def made(self, thing: Any) -> Where | None:
        """The place where a module, an optimizer or a loader was constructed; None if that was not seen."""
        place = self._made(thing)
        return None if place is None else self._recording.now(place)

    def where(self, frame: FrameType | None) -> Where | None:
        """The place of a frame now; None without a place, or while a whole module moves."""
        return self._recording.where(frame)

    @property
    def locator(self) -> Locator:
        """Finds places."""
        return self._recording.locator


def size_of(tensor: Any) -> int:
    """The bytes of a tensor's elements."""
    return int(tensor.numel()) * int(tensor.element_size())


def shape_of(tensor: Any) -> str:
    """A tensor in words: `64 × 3 × 224 × 224 float32`."""
    sizes = " × ".join(map(str, tensor.shape)) or "one"
    return f"{sizes} {str(tensor.dtype).removeprefix('torch.')}"


def described(tensor: Any) -> str:
    """A tensor in words, and where it is if that is the CPU."""
    return shape_of(tensor) + (" on the CPU" if tensor.device.type == "cpu" else "")
