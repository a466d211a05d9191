"""The lines that step an optimizer or call a model, and the calls between functions of the project in the first steps.

A profile function sees each call, which takes time, so it watches only steps that are not timed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any


class StepCalls:
    """Watches the process from `start` to `stop`. `root` is the folder of the project."""

    def __init__(self, root: str) -> None:
        self._root = os.path.join(os.path.realpath(root), "")
        self._files: dict[str, str] = {}
        self._calls: dict[tuple[str, int, CodeType], tuple[str, int, str, int]] = {}
        self._steps: dict[tuple[str, int], int] = {}
        self._models: dict[tuple[str, int], set[str]] = {}
        self._known: set[tuple[tuple[str, int], int]] = set()
        self._model_call: CodeType | None = None
        self._compile: CodeType | None = None
        self._compiles = False

    def start(self) -> None:
        """Watch calls from here on, unless something else does."""
        if sys.getprofile() is None:
            torch = sys.modules.get("torch")
            if torch is not None:
                self._model_call = torch.nn.Module._wrapped_call_impl.__code__
                self._compile = torch.compile.__code__
            sys.setprofile(self._called)

    def stop(self) -> None:
        """Watch no longer."""
        if sys.getprofile() == self._called:
            sys.setprofile(None)

    def stepped(self, frame: FrameType | None) -> None:
        """An optimizer has made a step below a frame."""
        place = self.place(frame)
        if place is not None:
            self._steps[place] = self._steps.get(place, 0) + 1

    def report(self) -> dict[str, Any]:
        """The calls, each with the file and line of both sides, the counts of steps, and the names of models by line.

        `compiles` is true if the process compiles something.
        """
        return {
            "calls": sorted(set(self._calls.values())),
            "steps": [[*place, count] for place, count in sorted(self._steps.items())],
            "models": [[*place, sorted(names)] for place, names in sorted(self._models.items())],
            "compiles": self._compiles,
        }

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        self._compiles = self._compiles or code is self._compile
        if code is self._model_call:
            self._model_called(frame)
            return
        callee = self._file(code.co_filename)
        if not callee:
            return
        place = self.place(frame.f_back)
        if place is not None and (*place, code) not in self._calls:
            self._calls[(*place, code)] = (*place, callee, code.co_firstlineno)

    def _model_called(self, frame: FrameType) -> None:
        """Note the line and the names of a model with parameters that no other module calls."""
        module: Any = frame.f_locals.get("self")
        above = frame.f_back
        place = self.place(above)
        if place is None or (place, id(module)) in self._known:
            return
        self._known.add((place, id(module)))
        caller = next(each for each in _upwards(above) if self._file(each.f_code.co_filename))
        if any(each.f_code is self._model_call for each in _upwards(above)) or not any(
            True for _ in module.parameters()
        ):
            return
        self._models.setdefault(place, set()).update(_names_of(module, caller))

    def place(self, frame: FrameType | None) -> tuple[str, int] | None:
        """The innermost line of the project at or above a frame."""
        while frame is not None:
            file = self._file(frame.f_code.co_filename)
            if file:
                return file, frame.f_lineno
            frame = frame.f_back
        return None

    def _file(self, name: str) -> str:
        """The path of a file from the project's folder; empty for others."""
        known = self._files.get(name)
        if known is None:
            full = os.path.realpath(name)
            is_mine = full.startswith(self._root) and f"{os.sep}site-packages{os.sep}" not in full
            known = self._files[name] = full[len(self._root) :] if is_mine and not name.startswith("<") else ""
        return known


def _upwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _names_of(module: Any, frame: FrameType) -> Iterator[str]:
    """The names that a module has in a frame, also as an attribute of `self`."""
    for names in (frame.f_locals, frame.f_globals):
        yield from (name for name, value in names.items() if value is module)
    holder = frame.f_locals.get("self")
    for attributes in (getattr(holder, "__dict__", {}), getattr(holder, "_modules", {})):
        yield from (f"self.{name}" for name, value in attributes.items() if value is module)
