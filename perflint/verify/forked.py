"""Runs of a program that need not import again what it imports."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import perflint
from perflint.tracer.probe import VARIABLE

_SERVER = str(Path(perflint.__file__).parent / "tracer" / "forking.py")
GRACE = 5.0
"""Seconds that a program has to end once it is asked to."""


class Forked:
    """The process of `tracer.forking`, which has made the imports of a program.

    `interpreter` are the words of the command in front of the script; `imported` is what the probe listed, and may
    take so many seconds. Its methods raise EOFError if it has ended.
    """

    def __init__(
        self,
        interpreter: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        imported: Mapping[str, Any],
        seconds: float,
    ) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [*interpreter, _SERVER],
            cwd=folder,
            env={**environment, VARIABLE: ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests, self._answered = self._process.stdin, self._process.stdout
        self._ask(imported)
        if not self._answers(seconds):
            kill(self._process.pid, signal.SIGKILL)
        answer = json.loads(self._answer())
        self.seconds: float = answer["seconds"]
        """The time that the imports took."""
        self.reason: str = answer["reason"]
        """Why a fork would not be what a start is; empty where it would be."""

    def run(
        self, command: Sequence[str], environment: Mapping[str, str], out: str, err: str, seconds: float | None
    ) -> int | None:
        """The exit status of a script with arguments; None if it did not end within `seconds`."""
        request = {"command": command, "folder": str(self._folder), "out": out, "err": err}
        self._ask(request | {"environment": dict(environment)})
        process = int(self._answer())
        has_ended = False
        try:
            has_ended = self._answers(seconds)
        finally:
            if not has_ended:
                kill(process, signal.SIGTERM)
                self._answers(GRACE)
            kill(process, signal.SIGKILL)
            status = int(self._answer())
        return status if has_ended else None

    def close(self) -> None:
        """End the process."""
        kill(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def _ask(self, request: Mapping[str, Any]) -> None:
        with suppress(BrokenPipeError):
            self._requests.write(json.dumps(request).encode() + b"\n")
            self._requests.flush()

    def _answer(self) -> bytes:
        answer = self._answered.readline()
        if not answer:
            self.close()
            raise EOFError("the process that makes the imports has ended")
        return answer

    def _answers(self, seconds: float | None) -> bool:
        """True if there is an answer within some seconds."""
        return bool(select.select([self._answered], [], [], seconds)[0])


def kill(process: int, number: int) -> None:
    """Send a signal to a process, and to what it has started and left behind."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process, number)
