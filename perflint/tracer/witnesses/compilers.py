"""What torch.compile traced, where it gave up, and how often the program called it; captures of CUDA graphs."""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from types import CodeType, TracebackType
from typing import Any

from perflint.tracer.places import Owner
from perflint.tracer.recording import Where
from perflint.tracer.replacing import replace
from perflint.tracer.witnesses.base import Call, Handler, Witness

LINE_LIMIT = 5000
"""Traced lines of the user's code that are recorded."""
_Line = tuple[str, int, str]
"""The file, the number of the line, and the function."""


class Compiling(Witness):
    """Notes the lines that torch.compile traces to the end, from its own records. It imports no compiler."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._undo = ExitStack()
        self._is_listening = False
        self._context: weakref.ref[Any] | None = None
        self._attempt: set[_Line] = set()
        self._traced: set[_Line] = set()
        self._compiled: Counter[tuple[str, int, str]] = Counter()
        """How often each function was compiled, by its file, its line and its name."""

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        yield torch, "compile", self._called
        yield torch.nn.Module, "compile", self._called

    def _called(self, call: Call) -> None:
        self.observe("compile.called", call.where, ms=call.ms)
        self._listen()
        result = call.result
        if result is not None and _is_compiled(result):
            before = _frames()
            # Only the count is kept, not the object.
            weakref.finalize(result, self._guarded(self._freed), before, call.where).atexit = False

    def _freed(self, before: int, where: Where) -> None:
        if self._is_listening and _frames() == before and not _is_forced_eager():
            self.observe("compile.unused", where)

    def _listen(self) -> None:
        if self._is_listening or "torch._dynamo.convert_frame" not in sys.modules:
            return
        from torch._dynamo import convert_frame
        from torch._guards import TracingContext

        register = getattr(convert_frame, "register_bytecode_hook", None)
        original = getattr(TracingContext, "set_current_loc", None)
        self._is_listening = True
        if register is None or original is None:
            return
        trace_line = self._guarded(self._trace_line)
        finish = self._guarded(self._finished)

        def noted(filename: str, lineno: int, frame_name: str) -> Any:
            trace_line(filename, lineno, frame_name)
            return original(filename, lineno, frame_name)

        replace(self._undo, TracingContext, "set_current_loc", staticmethod(noted))

        def compiled(code: CodeType, _: CodeType) -> None:
            finish(code)

        self._undo.callback(register(compiled).remove)

    def _trace_line(self, filename: str, line: int, function: str) -> None:
        from torch._guards import TracingContext

        context = TracingContext.try_get()
        if context is None:
            return
        if self._context is None or self._context() is not context:
            # Each attempt to compile has a context of its own.
            self._context = weakref.ref(context)
            self._attempt.clear()
        if self.locator.owner(filename) is Owner.USER and len(self._traced) < LINE_LIMIT:
            self._attempt.add((filename, line, function))

    def _finished(self, code: CodeType) -> None:
        self._compiled[code.co_filename, code.co_firstlineno, code.co_qualname] += 1
        # Without lines of its own, as in a function of the compiler, it may end the attempt of another function.
        if any(filename == code.co_filename for filename, _, _ in self._attempt):
            self._traced |= self._attempt
        self._attempt.clear()

    def stop(self) -> None:
        self._undo.close()
        utils = sys.modules.get("torch._dynamo.utils")
        if utils is None or not self._is_listening:
            return
        ended = {
            (frame.filename, frame.lineno)
            for entry in getattr(utils, "graph_break_reasons", ())
            for frame in entry.user_stack
        }
        for each in getattr(utils, "get_compilation_metrics", list)():
            if getattr(each, "fail_type", None):
                ended.add(self._note_failure(each))
        for filename, line, function in sorted(self._traced):
            if (filename, line) not in ended:
                self.observe("compile.traced", Where(self.locator.line(filename, line, function), None))
        for (_, _, name), times in self._compiled.items():
            if times > 1:
                self.observe("compile.recompiled", Where(None, None), bytes=times - 1, detail=name)
        for _ in range(utils.counters["inductor"]["cudagraph_skips"]):
            self.observe("cudagraph.skipped", Where(None, None))

    def _note_failure(self, metrics: Any) -> tuple[str, int]:
        """Record a failed attempt to compile a function, and give the line that failed."""
        filename, line = getattr(metrics, "fail_user_frame_filename", ""), getattr(metrics, "fail_user_frame_lineno", 0)
        detail = str(metrics.fail_reason or "").strip().partition("\n")[0]
        if filename and line and self.locator.owner(filename) is Owner.USER:
            place = self.locator.line(filename, line, str(metrics.co_name))
            self.observe("compile.gave-up", Where(place, None), detail=detail)
        if metrics.fail_type != "Unsupported":
            self.observe("compile.failed", Where(None, None), detail=f"{metrics.fail_type}: {detail}")
        return str(filename), int(line or 0)


def _is_compiled(result: Any) -> bool:
    """True for a compiled function or module, and not for a decorator that waits for its function."""
    return hasattr(result, "_torchdynamo_orig_callable") or type(result).__name__ == "OptimizedModule"


def _frames() -> int:
    """The number of functions that the compiler has looked at."""
    utils = sys.modules.get("torch._dynamo.utils")
    return int(utils.counters["frames"]["total"]) if utils is not None else 0


def _is_forced_eager() -> bool:
    """True if the program or a simulation has switched the compiler off: then nothing is compiled at all."""
    eval_frame = sys.modules.get("torch._dynamo.eval_frame")
    stance = getattr(eval_frame, "_stance", None)
    return getattr(stance, "stance", "default") != "default"


class Captures(Witness):
    """Watches captures of CUDA graphs: each ends well or with an error, at the place of the error."""

    def start(self) -> None:
        import torch

        self._undo = ExitStack()
        graph: Any = torch.cuda.graph
        original = getattr(graph, "__exit__", None)
        if original is None:
            return
        ended = self._guarded(self._ended)

        def noted(context: Any, kind: Any = None, error: Any = None, trace: TracebackType | None = None) -> Any:
            frame = sys._getframe(1)
            try:
                result = original(context, kind, error, trace)
            except Exception as raised:
                ended(frame, error or raised, trace)
                raise
            ended(frame, error, trace)
            return result

        noted.__wrapped__ = original  # type: ignore[attr-defined]
        replace(self._undo, graph, "__exit__", noted)

    def stop(self) -> None:
        self._undo.close()

    def _ended(self, frame: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        where = self.where(frame)
        if where is None:
            return
        if error is None:
            self.observe("capture.done", where)
            return
        detail = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        self.observe("capture.failed", where, detail=detail)
        innermost: TracebackType | None = None
        while trace is not None:
            if self.locator.owner(trace.tb_frame.f_code.co_filename) is Owner.USER:
                innermost = trace
            trace = trace.tb_next
        if innermost is not None:
            place = self.locator.place(innermost.tb_frame.f_code, innermost.tb_lasti, innermost.tb_lineno)
            self.observe("capture.raised", Where(place, where.step), detail=detail)
