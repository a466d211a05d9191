"""All witnesses of a session together."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache

import perflint.tracer.witnesses as package
from perflint.tracer.recording import Recording
from perflint.tracer.witnesses._calls import CallWatch
from perflint.tracer.witnesses.base import Guard, Made, Witness

STEPS = 2
"""Recorded steps in which built-in functions are watched: all calls of torch take a microsecond or two longer."""


class Witnesses:
    """The witnesses of one session, which watch from `start` to `stop`."""

    def __init__(self, recording: Recording, guarded: Guard, made: Made, every_call: bool) -> None:
        self._known = [witness(recording, guarded, made) for witness in witness_classes()]
        self._all: list[Witness] = []
        """Those that watch. A program that never imports torch starts none."""
        self._guarded = guarded
        self._every_call = every_call
        """True to see the calls of built-in functions of all steps and of the time around them."""
        self._watch = CallWatch(recording, samples=not every_call)
        self._steps = 0

    def start(self) -> None:
        """Watch from here on. Needs torch."""
        watched = [call for witness in self._known for call in witness.calls()]
        self._watch.start((owner, name, self._guarded(handler)) for owner, name, handler in watched)
        for witness in self._known:
            witness.start()
            self._all.append(witness)
        if self._every_call:
            self._watch.start_builtins()

    def begin_steps(self) -> None:
        """Recorded steps begin, in a program that does not compile."""
        self._watch.start_builtins()

    def leave_builtins(self) -> None:
        """Watch the built-in functions no longer: the program compiles, and the compiler guards on modes."""
        self._watch.stop_builtins()

    def pause(self, paused: bool = True) -> None:
        """See no calls until further notice: the profiler runs, and times what the program does."""
        self._watch.is_paused = paused

    def end_step(self) -> None:
        """A recorded step ended."""
        for witness in self._all:
            witness.end_step()
        self._steps += 1
        if self._steps >= STEPS and not self._every_call:
            self._watch.stop_builtins()

    def restart(self) -> None:
        """The steps so far were none."""
        self.pause(False)
        self._steps = 0
        for witness in self._all:
            witness.restart()

    @property
    def call_steps(self) -> int:
        """The number of recorded steps, from the first on, in which built-in functions were watched."""
        return self._steps if self._every_call else min(self._steps, STEPS)

    def rest(self) -> None:
        """The recorded steps are over: only some witnesses stay."""
        self._watch.stop()
        staying = [witness for witness in self._all if witness.stays]
        for witness in self._all:
            if witness not in staying:
                witness.stop()
        self._all = staying

    def stop(self) -> None:
        """Watch no longer. A second call changes nothing."""
        self._watch.stop()
        while self._all:
            self._all.pop().stop()


@cache
def witness_classes() -> tuple[type[Witness], ...]:
    """The witnesses of the package, by module."""
    return tuple(_found())


def _found() -> Iterator[type[Witness]]:
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Witness) and value.__module__ == module.__name__:
                if value is not Witness:
                    yield value
