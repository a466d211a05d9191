"""perflint's own faults, caught so that one of them costs one answer and not the run."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType

from perflint.findings import Problem

Crash = tuple[str, int | None, str]
"""The rule that crashed, the line of the checked file, and a hint."""


class contained:
    """Turn any exception of a `with` block into an internal problem.

    `describe` says what crashed, at which line, and what helps; it is asked only then: this stands
    around every question to a rule. With PERFLINT_TRACEBACK in the environment, the traceback goes
    to standard error.
    """

    __slots__ = ("_describe", "_path", "_problems")

    def __init__(self, problems: list[Problem], path: str, describe: Callable[[], Crash]) -> None:
        self._problems = problems
        self._path = path
        self._describe = describe

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        # The reader of the output has gone, or the user interrupts: neither is a fault.
        if not isinstance(error, Exception) or isinstance(error, BrokenPipeError):
            return False
        if _is_interrupt(error):
            raise KeyboardInterrupt from None
        if os.environ.get("PERFLINT_TRACEBACK"):
            import traceback as printer

            printer.print_exception(error)
        doing, line, help = self._describe()
        text = str(error).partition("\n")[0]
        what = f"{type(error).__name__}: {text}" if text else type(error).__name__
        message = f"{doing} crashed: {what} ({_place(error)})"
        self._problems.append(Problem(self._path, message, help=help, line=line, internal=True))
        return True


def _is_interrupt(error: BaseException) -> bool:
    """True if an error is an interrupt by the user, or was raised for one, as while a class is made (Python 3.11)."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        if isinstance(at, KeyboardInterrupt):
            return True
        seen.add(id(at))
        at = at.__context__ if at.__cause__ is None else at.__cause__
    return False


def _place(error: Exception) -> str:
    at = error.__traceback__
    assert at is not None, "it was raised"
    while at.tb_next is not None:
        at = at.tb_next
    return f"{os.path.basename(at.tb_frame.f_code.co_filename)}:{at.tb_lineno}"
