"""The lines that step an optimizer or call a model, and the calls between functions of the project in the first steps.

A profile function sees each call, which takes time, so it watches only steps that are not timed, and not the compiler.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from operator import ne
from threading import get_ident
from types import CodeType, FrameType
from typing import Any

_IN_TURNS = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_REDUCERS = ("torch.nn.parallel.distributed", "torch.distributed")
"""Modules of classes whose hooks add up gradients."""


class StepCalls:
    """Watches the process from `start` to `stop`. `root` is the folder of the project."""

    def __init__(self, root: str) -> None:
        self._root = os.path.join(os.path.realpath(root), "")
        self._files: dict[str, str] = {}
        self._calls: dict[tuple[str, int, CodeType], tuple[str, int, str, int]] = {}
        self._times: Counter[CodeType] = Counter()
        """How often functions of the project were called."""
        self._lines: set[tuple[str, int]] = set()
        """The lines of the project that made calls."""
        self._steps: dict[tuple[str, int], int] = {}
        self._stepped: dict[int, tuple[Any, set[tuple[str, int]]]] = {}
        """The optimizers by their identities, with the lines that step them."""
        self._cleared: dict[tuple[str, int], set[Any]] = {}
        """The parameters whose gradients a line clears through their model."""
        self._clears: set[tuple[str, int, str, int]] = set()
        self._numbers: dict[tuple[tuple[str, int], CodeType, str], list[float]] = {}
        """The numbers that a name of a function stood for when a line stepped an optimizer."""
        self._watches = False
        self._stacks: set[tuple[CodeType, ...]] = set()
        """The functions of the project below which optimizers made steps, the innermost first."""
        self._models: list[tuple[tuple[Any, ...], set[CodeType]]] = []
        self._known: set[tuple[tuple[str, int], int, bool]] = set()
        self._training: set[CodeType] = set()
        self._evaluating: dict[CodeType, str] = {}
        """The functions that call models with gradients and without, these with their file."""
        self._switching: dict[CodeType, str] = {}
        """The functions that switch models to evaluation, also after `stop`, with their file."""
        self._model_call: CodeType | None = None
        self._compile: CodeType | None = None
        self._backward: CodeType | None = None
        self._log: CodeType | None = None
        self._logs: set[tuple[str, int]] = set()
        """The lines of the project below which a message was logged."""
        self._backwards: set[tuple[str, int]] = set()
        """The lines of the project below which a backward pass began."""
        self._compiles = False
        self._reduces = False
        self._paused_in: int | None = None
        """The thread in which nothing is watched while torch compiles."""

    def start(self) -> None:
        """Watch calls from here on, unless something else does."""
        self._watches = True
        if sys.getprofile() is None:
            torch = sys.modules.get("torch")
            if torch is not None:
                self._model_call = torch.nn.Module._wrapped_call_impl.__code__
                self._compile = torch.compile.__code__
                self._backward = torch.autograd.backward.__code__
                self._log = sys.modules["logging"].Logger._log.__code__
            sys.setprofile(self._called)

    def stop(self) -> None:
        """Watch no longer."""
        self._paused_in = None
        if self._watches:
            self._watches = False
            self._clears.update(self._pairs())
            self._cleared.clear()
            self._stepped.clear()
        if sys.getprofile() == self._called:
            sys.setprofile(None)

    def spare_compiler(self) -> None:
        """Watch nothing while torch compiles, which calls so much that it would take twice as long."""
        handler = getattr(sys.modules["torch._dynamo.callback"], "callback_handler", None)
        if handler is not None:
            handler.register_start_callback(self._pause)
            handler.register_end_callback(self._resume)

    def _pause(self, *_: Any) -> None:
        if sys.getprofile() == self._called:
            self._paused_in = get_ident()
            sys.setprofile(None)

    def _resume(self, *_: Any) -> None:
        if self._paused_in == get_ident():
            self._paused_in = None
            sys.setprofile(self._called)

    def stepped(self, frame: FrameType | None, optimizer: Any) -> None:
        """An optimizer has made a step below a frame."""
        place = self.place(frame)
        if place is not None:
            self._steps[place] = self._steps.get(place, 0) + 1
            self._stacks.add(tuple(each.f_code for each in self._own(frame)))
            # The names of a frame keep values alive until they are asked for again. Memory that is pinned must not be
            # freed while a graph is captured: torch would ask an event of the capture whether it can be used again.
            if self._watches and not _is_capturing():
                self._stepped.setdefault(id(optimizer), (optimizer, set()))[1].add(place)
                for each in self._own(frame):
                    own = getattr(each.f_locals.get("self"), "__dict__", {})
                    for name, value in (*each.f_locals.items(), *((f"self.{name}", own[name]) for name in own)):
                        if isinstance(value, float):
                            self._numbers.setdefault((place, each.f_code, name), []).append(value)

    def cleared(self, frame: FrameType | None, model: Any) -> None:
        """The gradients of a model are cleared below a frame."""
        place = self.place(frame) if self._watches else None
        if place is not None:
            self._cleared.setdefault(place, set()).update(each for each in model.parameters() if each.requires_grad)

    def switched(self, frame: FrameType | None) -> None:
        """A model was switched to evaluation below a frame."""
        own = self._own(frame)
        is_function = bool(own) and own[0].f_code.co_name != "<module>"
        if is_function and not any(each.f_code is self._model_call for each in _upwards(frame)):
            self._switching[own[0].f_code] = self._file(own[0].f_code.co_filename)

    def report(self) -> dict[str, Any]:
        """The calls, each with the file and line of both sides, the counts of steps, and the models of the step.

        A model has the place of its call; the place of the outermost function on the stack that holds it by a name,
        with that name; the number of its copies; its names in all functions on the stack, each with the file and
        first line of the function; and true if it has weights of four dimensions. `compiles` is true if the process
        compiles something, `reduces` if hooks of a model add up its gradients. `lines` are those of the project that
        made any call, `backwards` those below which a backward pass began, `again` the functions that were called
        several times.
        Evaluations are functions that call models without gradients only, or that switch them to evaluation and make
        no step, by their file and line. `clears` are pairs of the line of a model's `zero_grad` and the line that steps
        an optimizer of its parameters, 0 if there is none, `logs` the lines below which messages were logged. `moving`
        are names that were another number in each step, with the file and first line of their function.
        """
        compiler = getattr(sys.modules.get("torch"), "compiler", None)
        # Only these versions can leave a function as it is.
        stepping = self._stepping()
        has_eager = stepping and hasattr(compiler, "set_stance")
        training = self._training | stepping
        switching = self._switching.keys() - {code for stack in self._stacks for code in stack}
        evaluating = (self._evaluating.keys() | switching) - training if has_eager else set()
        models = {found for found, codes in self._models if codes & stepping or not stepping}
        return {
            "calls": sorted(set(self._calls.values())),
            "lines": sorted(self._lines),
            "steps": [[*place, count] for place, count in sorted(self._steps.items())],
            "models": sorted(models),
            "evaluations": sorted(
                ((self._evaluating | self._switching)[code], code.co_firstlineno) for code in evaluating
            ),
            "compiles": self._compiles,
            "reduces": self._reduces,
            "backwards": sorted(self._backwards),
            "again": sorted(self._again()),
            "clears": sorted(self._clears),
            "logs": sorted(self._logs),
            "moving": sorted({*self._moving()}),
        }

    def _pairs(self) -> Iterator[tuple[str, int, str, int]]:
        """Lines that clear gradients through models, each with those that step optimizers of the parameters.

        All gradients of the optimizers are cleared that way. A line that clears others, too, has a pair without a step.
        """
        whole = set[Any]().union(*self._cleared.values())
        places: dict[Any, set[tuple[str, int]]] = {}
        for optimizer, steps in self._stepped.values():
            own = {each for group in optimizer.param_groups for each in group["params"] if each.requires_grad}
            if own <= whole:
                places |= {each: places.get(each, set()) | steps for each in own}
        for line, parameters in self._cleared.items():
            yield from {(*line, *step) for each in parameters for step in places.get(each, {("", 0)})}

    def _moving(self) -> Iterator[tuple[str, int, str]]:
        for (_, code, name), values in self._numbers.items():
            if len(values) > 2 and all(map(ne, values, values[1:])):
                yield self._file(code.co_filename), code.co_firstlineno, name

    def _again(self) -> set[tuple[str, int]]:
        # Each turn of a generator looks like a call.
        codes = (code for code, times in self._times.items() if times > 1 and not code.co_flags & _IN_TURNS)
        return {(self._file(code.co_filename), code.co_firstlineno) for code in codes}

    def _stepping(self) -> set[CodeType]:
        """The functions that make a step: they call both an optimizer and a model, or methods that wrap these."""
        training = {code for _, codes in self._models for code in codes}
        return {next((code for code in stack if code in training), stack[0]) for stack in self._stacks}

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "c_call":
            self._note_line(frame)
        if event != "call":
            return
        self._note_line(frame.f_back)
        code = frame.f_code
        self._compiles = self._compiles or code is self._compile
        if code is self._backward and (place := self.place(frame.f_back)) is not None:
            self._backwards.add(place)
        if code is self._log and (place := self.place(frame.f_back)) is not None:
            self._logs.add(place)
        if code is self._model_call:
            self._model_called(frame)
            return
        callee = self._file(code.co_filename)
        if not callee:
            return
        self._times[code] += 1
        place = self.place(frame.f_back)
        if place is not None and (*place, code) not in self._calls:
            self._calls[(*place, code)] = (*place, callee, code.co_firstlineno)

    def _note_line(self, frame: FrameType | None) -> None:
        file = self._file(frame.f_code.co_filename) if frame is not None else ""
        if file and frame is not None:
            self._lines.add((file, frame.f_lineno))

    def _model_called(self, frame: FrameType) -> None:
        """Note the holder of a model with parameters that no other module calls."""
        module: Any = frame.f_locals.get("self")
        place = self.place(frame.f_back)
        has_gradients = sys.modules["torch"].is_grad_enabled()
        if place is None or (place, id(module), has_gradients) in self._known:
            return
        self._known.add((place, id(module), has_gradients))
        above = list(_upwards(frame.f_back))
        if any(each.f_code is self._model_call for each in above) or next(module.parameters(), None) is None:
            return
        own = self._own(frame.f_back)
        held, name = _held(own, module)
        parallel = sys.modules["torch"].nn.parallel
        copies = len(module.device_ids) if isinstance(module, parallel.DataParallel) else None
        if isinstance(module, parallel.DistributedDataParallel):
            copies = 1
        self._reduces |= any(each.__module__.startswith(_REDUCERS) for each in type(module).__mro__)
        holder = self.place(held)
        assert holder is not None
        found = (
            *place,
            *holder,
            name + (".module" if copies is not None else ""),
            copies or 1,
            self._names(own, module),
            any(each.dim() == 4 for each in module.parameters()),
        )
        if has_gradients:
            self._models.append((found, {each.f_code for each in own}))
            self._training.add(own[0].f_code)
        else:
            self._models.append((found, {own[0].f_code}))
            self._evaluating[own[0].f_code] = place[0]

    def _names(self, frames: list[FrameType], module: Any) -> tuple[tuple[str, int, str], ...]:
        """The file and first line of each function that holds a module by a name, with that name."""
        names = ((each, _name(each, module)) for each in frames)
        return tuple(
            (self._file(each.f_code.co_filename), each.f_code.co_firstlineno, name) for each, name in names if name
        )

    def place(self, frame: FrameType | None) -> tuple[str, int] | None:
        """The innermost line of the project at or above a frame."""
        while frame is not None:
            file = self._file(frame.f_code.co_filename)
            if file:
                return file, frame.f_lineno
            frame = frame.f_back
        return None

    def is_own(self, frame: FrameType) -> bool:
        """True for a frame of the project."""
        return bool(self._file(frame.f_code.co_filename))

    def _own(self, frame: FrameType | None) -> list[FrameType]:
        """The frames of the project at or above a frame, the innermost first."""
        return [each for each in _upwards(frame) if self._file(each.f_code.co_filename)]

    def _file(self, name: str) -> str:
        """The path of a file from the project's folder; empty for others."""
        known = self._files.get(name)
        if known is None:
            full = os.path.realpath(name)
            is_mine = full.startswith(self._root) and f"{os.sep}site-packages{os.sep}" not in full
            known = self._files[name] = full[len(self._root) :] if is_mine and not name.startswith("<") else ""
        return known


def _is_capturing() -> bool:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda is not None and bool(cuda.is_initialized() and cuda.is_current_stream_capturing())


def _upwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _held(frames: list[FrameType], module: Any) -> tuple[FrameType, str]:
    """The frame that holds a module by a name, with that name; the innermost and no name if none does.

    The outermost one comes first. An argument comes last: its caller may hold the module by an attribute.
    """
    arguments: list[tuple[FrameType, str]] = []
    for frame in reversed(frames):
        code = frame.f_code
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        for name, value in frame.f_locals.items():
            if value is module and name != "self":
                if name not in given:
                    return frame, name
                arguments.append((frame, name))
    for frame in reversed(frames):
        if name := _attribute(frame.f_locals.get("self"), module):
            return frame, name
    return arguments[0] if arguments else (frames[0], "")


def _name(frame: FrameType, module: Any) -> str:
    """The name of a module in a frame, also as an attribute of `self`, or of one that holds it; empty without any."""
    local = [(name, value) for name, value in frame.f_locals.items() if name != "self"]
    found = next((name for name, value in local if value is module), "")
    found = found or _attribute(frame.f_locals.get("self"), module)
    kind = sys.modules["torch"].nn.Module
    own = [(f"self.{name}", value) for name, value in _attributes(frame.f_locals.get("self"))]
    holding = (
        name
        for name, value in (*local, *own)
        if isinstance(value, kind) and any(part is module for part in value.modules())
    )
    return found or next(holding, "")


def _attribute(holder: Any, module: Any) -> str:
    """The name of a module as an attribute of `self`, or of a module that is one; empty if it has none."""
    for name, value in _attributes(holder):
        if value is module:
            return f"self.{name}"
    for name, value in _attributes(holder):
        for inner, part in getattr(value, "__dict__", {}).get("_modules", {}).items():
            if part is module:
                return f"self.{name}.{inner}"
    return ""


def _attributes(holder: Any) -> Iterator[tuple[str, Any]]:
    own = getattr(holder, "__dict__", {})
    yield from own.items()
    yield from own.get("_modules", {}).items()
