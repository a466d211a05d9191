"""Times and failures of torch.compile, from its own records: nothing is switched on for them."""

from __future__ import annotations

import functools
import logging
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from types import CodeType
from typing import Any

from perflint.tracer.events import Compilation, CudagraphSkip, GraphBreak, Recompile
from perflint.tracer.places import Locator, Owner
from perflint.tracer.replacing import replace

REASON_LIMIT = 2000
_Records = tuple[GraphBreak | Recompile | Compilation | CudagraphSkip, ...]
_CUDAGRAPHS = "torch._inductor.cudagraph_utils.__cudagraphs"


class _Skips(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.reasons: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if "cudagraphs due to" in text:
            self.reasons[_cut(text)] += 1


class CompilationWatch:
    """Reads at the end what the compiler has noted, and listens to its log for skipped CUDA graphs."""

    def __init__(self) -> None:
        self._skips = _Skips()
        self._kept: _Records | None = None
        self._had_compiled = False
        self._was_called = False
        self.on_use: Callable[[], None] = lambda: None
        """Called before each call of `torch.compile`."""
        self._undo = ExitStack()

    def start(self) -> None:
        """Listen from here on."""
        import torch

        logging.getLogger(_CUDAGRAPHS).addHandler(self._skips)
        original = torch.compile

        @functools.wraps(original)
        def noted(*arguments: Any, **named: Any) -> Any:
            self._was_called = True
            self.on_use()
            return original(*arguments, **named)

        replace(self._undo, torch, "compile", noted)

    def stop(self) -> None:
        """Listen no longer."""
        logging.getLogger(_CUDAGRAPHS).removeHandler(self._skips)
        self._undo.close()

    @property
    def is_used(self) -> bool:
        """True if the program has called `torch.compile`."""
        backends = getattr(sys.modules.get("torch._dynamo.eval_frame"), "cached_backends", {})
        # Functions that are kept from the compiler have entries that are not callable.
        return self._was_called or self.has_compiled or any(map(callable, backends.values()))

    def keep(self, locator: Locator) -> None:
        """Keep the records so far: later compilations are not the program's."""
        self._had_compiled, self._kept = self.has_compiled, self.records(locator)

    @property
    def has_compiled(self) -> bool:
        """True if the compiler took over any function, whose lines then do not run one by one."""
        if self._kept is not None:
            return self._had_compiled
        counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
        return bool(counters.get("frames", {}).get("ok"))

    def records(self, locator: Locator) -> _Records:
        """The graph breaks, recompiles, compile times and skipped CUDA graphs of the process."""
        if self._kept is not None:
            return self._kept
        utils = sys.modules.get("torch._dynamo.utils")
        skips = tuple(CudagraphSkip(reason, count) for reason, count in self._skips.reasons.items())
        if utils is None:
            return skips
        return (*_breaks(utils, locator), *_recompiles(utils, locator), *_times(utils, locator), *skips)


def _breaks(utils: Any, locator: Locator) -> tuple[GraphBreak, ...]:
    found: Counter[tuple[Any, str]] = Counter()
    for entry in getattr(utils, "graph_break_reasons", ()):
        mine = [frame for frame in entry.user_stack if locator.owner(frame.filename) is Owner.USER]
        # The stack of a graph break is outermost first.
        at = (mine or entry.user_stack)[-1:]
        place = locator.line(at[0].filename, at[0].lineno or 1, at[0].name) if at else None
        found[place, _cut(str(entry.reason))] += 1
    return tuple(GraphBreak(place, reason, count) for (place, reason), count in found.items())


def _recompiles(utils: Any, locator: Locator) -> tuple[Recompile, ...]:
    found: Counter[tuple[str, int, str, str]] = Counter()
    for code, reasons in dict(getattr(utils, "guard_failures", {})).items():
        if isinstance(code, CodeType):
            for reason in reasons:
                file = locator.name(code.co_filename)
                found[file, code.co_firstlineno, code.co_qualname, _cut(_without_number(str(reason)))] += 1
    return tuple(Recompile(*key, count) for key, count in found.items())


def _times(utils: Any, locator: Locator) -> tuple[Compilation, ...]:
    """The time of each compiled function, of the last compilations that the compiler remembers (64 in torch 2.13)."""
    found: dict[tuple[str, int, str], list[float]] = {}
    for each in getattr(utils, "get_compilation_metrics", list)():
        name, line = getattr(each, "co_filename", None), getattr(each, "co_firstlineno", None)
        seconds = getattr(each, "entire_frame_compile_time_s", None)
        if name and line and seconds and locator.owner(name) is not Owner.SYSTEM:
            found.setdefault((locator.name(name), line, each.co_name or ""), []).append(seconds)
    return tuple(Compilation(*key, len(times), sum(times)) for key, times in found.items())


def _without_number(reason: str) -> str:
    """A guard's failure without the number of the compiled code in front."""
    head, colon, rest = reason.partition(": ")
    return rest if colon and head.replace("/", "").isdigit() else reason


def _cut(text: str) -> str:
    return text[:REASON_LIMIT]
