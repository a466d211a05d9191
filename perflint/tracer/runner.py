"""Runs a program as `python` would, with a session around it."""

from __future__ import annotations

import atexit
import os
import runpy
import sys
import threading
import types
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pkgutil import get_importer
from types import ModuleType, TracebackType
from typing import Any

from perflint.tracer.allow import has_promises
from perflint.tracer.children import trace_children
from perflint.tracer.file import TraceError
from perflint.tracer.importing import when_imported
from perflint.tracer.options import Options
from perflint.tracer.session import Session

Done = Callable[[Session, TraceError | None], None]
"""Called once at the end, when the file is written, or with the reason why it could not be."""


def run_program(options: Options, module: bool, program: list[str], done: Done) -> None:
    """Run `program`, a script or a module and its arguments, in this process, which is made for it.

    Returns or raises what the program does, so that the interpreter ends with the same status,
    message and signal as without a trace. Raises SystemExit(1) for syncs that `options.fail_on_sync`, a function
    marked `sync_free` or `options.sync_free` forbids.
    """
    session = Session(options, tuple(["-m", *program] if module else program))
    ending = _Ending(session, done)
    # The first to register is the last to be called: the program's own handlers are traced too.
    atexit.register(ending)
    session.start()
    when_imported("torch", session.arm)
    trace_children(options)
    try:
        (_run_module if module else _run_script)(program)
    except SystemExit as exit_:
        status = _status(exit_)
        ending.ended = f"exit {status}" if status else "finished"
        if status or not _fails(session, ending):
            raise
        raise SystemExit(1) from None
    except BaseException as error:
        ending.ended = "interrupted" if isinstance(error, KeyboardInterrupt) else type(error).__name__
        _show_only_frames_of_the_program()
        raise
    ending.ended = "finished"
    if _fails(session, ending):
        raise SystemExit(1)


class _Ending:
    """Ends the session when the interpreter ends."""

    def __init__(self, session: Session, done: Done) -> None:
        self.ended = "finished"
        self._session = session
        self._done = done

    def __call__(self) -> None:
        error = None
        try:
            trace = self._session.finish(self.ended)
        except TraceError as fault:
            trace, error = self._session.trace, fault
        if trace is not None:
            done, self._done = self._done, _nothing
            done(self._session, error)


def _nothing(*_: object) -> None:
    """There is nothing left to tell."""


def _fails(session: Session, ending: _Ending) -> bool:
    """True if a program that succeeded fails for its syncs."""
    if not session.options.fail_on_sync and not session.options.sync_free and not has_promises():
        return False
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    ending()
    if session.trace is None:
        return False
    return bool(session.trace.broken_promises or (session.options.fail_on_sync and session.trace.unallowed_syncs))


def _status(exit_: SystemExit) -> int:
    """The exit status that the interpreter makes of it."""
    if exit_.code is None:
        return 0
    return exit_.code if isinstance(exit_.code, int) else 1


def _fresh_main() -> ModuleType:
    """A new `__main__`: pickled names and multiprocessing look the program up there."""
    main = types.ModuleType("__main__")
    names = main.__dict__
    names |= {"__builtins__": sys.modules["builtins"]}
    if sys.version_info < (3, 14):
        names |= {"__annotations__": {}}
    sys.modules["__main__"] = main
    return main


def _run_script(program: list[str]) -> None:
    sys.argv = program
    path = program[0]
    main = _fresh_main()
    if get_importer(path) is not None:
        # A folder or an archive with a `__main__`.
        sys.path.insert(0, os.path.abspath(path))
        runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]
        return
    full = os.path.abspath(path)
    if not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    names = main.__dict__
    names |= {"__file__": full, "__cached__": None, "__loader__": SourceFileLoader("__main__", full)}
    with open(full, "rb") as file:
        text = file.read()
    exec(compile(text, full, "exec", dont_inherit=True), main.__dict__)


def _run_module(program: list[str]) -> None:
    _fresh_main()
    sys.argv = ["-m", *program[1:]]
    if not sys.flags.safe_path:
        sys.path.insert(0, os.getcwd())
    runpy._run_module_as_main(program[0])  # type: ignore[attr-defined]


def _show_only_frames_of_the_program() -> None:
    """Have the interpreter, or the hook that the program put in its place, not show this module's frames."""
    show = sys.excepthook

    def shown(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> Any:
        own = trace
        while own is not None and own.tb_frame.f_code is not _run_script.__code__:
            if own.tb_frame.f_code is _run_module.__code__:
                break
            own = own.tb_next
        inner = own.tb_next if own is not None else None
        return show(kind, error.with_traceback(inner), inner)

    sys.excepthook = shown
