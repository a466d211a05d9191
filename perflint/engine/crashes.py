"""perflint's own faults, caught so that one of them costs one answer and not the run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from perflint.findings import Problem


@contextmanager
def contained(problems: list[Problem], path: str, doing: str, line: int | None, help: str) -> Iterator[None]:
    """Turn any exception of the block into an internal problem; `doing` is what crashed."""
    try:
        yield
    except Exception as error:
        text = str(error).partition("\n")[0]
        what = f"{type(error).__name__}: {text}" if text else type(error).__name__
        problems.append(
            Problem(path, f"{doing} crashed: {what} ({_place(error)})", help=help, line=line, internal=True)
        )


def _place(error: Exception) -> str:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return "nowhere"
    return f"{os.path.basename(traceback.tb_frame.f_code.co_filename)}:{traceback.tb_lineno}"
