"""perflint's own faults, caught so that one of them costs one answer and not the run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from perflint.findings import Problem


@contextmanager
def contained(problems: list[Problem], path: str, doing: str, line: int | None, help: str) -> Iterator[None]:
    """Turn any exception of the block into an internal problem; `doing` is what crashed.

    With PERFLINT_TRACEBACK in the environment, the traceback goes to standard error.
    """
    try:
        yield
    except BrokenPipeError:
        # Nobody reads the output any more; that is no fault.
        raise
    except Exception as error:
        if os.environ.get("PERFLINT_TRACEBACK"):
            import traceback

            traceback.print_exc()
        text = str(error).partition("\n")[0]
        what = f"{type(error).__name__}: {text}" if text else type(error).__name__
        problems.append(
            Problem(path, f"{doing} crashed: {what} ({_place(error)})", help=help, line=line, internal=True)
        )


def _place(error: Exception) -> str:
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    if at is None:
        return "nowhere"
    return f"{os.path.basename(at.tb_frame.f_code.co_filename)}:{at.tb_lineno}"
