"""Traces processes that the program starts by multiprocessing's methods `spawn` and `forkserver`.

Each writes a file of its own, if it does anything that a trace is about: with the rank in its name
where it has one, else its process id.
"""

from __future__ import annotations

import atexit
import functools
import multiprocessing.spawn
from multiprocessing.util import Finalize, register_after_fork
from typing import Any

from perflint.tracer.options import Options

_LAST = -1000
"""The priority of what a process does after all else at its end."""


def trace_children(options: Options) -> None:
    """Have processes that are started from now on traced, too."""
    prepare = multiprocessing.spawn.get_preparation_data

    @functools.wraps(prepare)
    def prepared(name: str) -> dict[str, Any]:
        # What a child is sent first. It looks only at the keys that it knows.
        return prepare(name) | {"perflint": _Joins(options.to_json())}

    multiprocessing.spawn.get_preparation_data = prepared


class _Joins:
    """Is unpickled in the child, which starts the trace there."""

    def __init__(self, options: str) -> None:
        self._options = options

    def __reduce__(self) -> tuple[Any, ...]:
        return _join, (self._options,)


def _join(text: str) -> None:
    from perflint.tracer.importing import when_imported
    from perflint.tracer.session import Session

    options = Options.from_json(text)
    session = Session(options)
    session.become_child()
    session.start()
    when_imported("torch", session.arm)
    trace_children(options)

    def finish() -> None:
        session.finish("finished")

    def finish_at_end(_: Session) -> None:
        Finalize(None, finish, exitpriority=_LAST)

    # A process of a fork server ends without the interpreter's handlers, and forgets at its start
    # what is to be done at its end.
    register_after_fork(session, finish_at_end)
    atexit.register(finish)
