"""Running perflint as users do."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from perflint.cli.main import main
from tests.forking import environment as inherited

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a command."""

    code: int
    out: str
    err: str


class Command:
    """perflint, in this process and in a folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        for name in ("NO_COLOR", "FORCE_COLOR", "PERFLINT_TRACEBACK"):
            monkeypatch.delenv(name, raising=False)
        for name in [name for name in os.environ if name.startswith("PERFLINT_")]:
            if name not in ("PERFLINT_CACHE_DIR", "PERFLINT_NO_CACHE"):
                monkeypatch.delenv(name)
        monkeypatch.chdir(folder)

    def __call__(self, *arguments: str, stdin: bytes | None = None) -> Ran:
        """Run with some arguments. An exit by argparse counts as the exit code."""
        if stdin is not None:
            self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            code = main(list(arguments))
        except SystemExit as exit:
            assert isinstance(exit.code, int)
            code = exit.code
        captured = self._capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    def write(self, name: str, text: str | bytes) -> None:
        """Write a file below the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)


def python(*arguments: str, cwd: Path | None = None, stdin: bytes = b"", **environment: str) -> Ran:
    """Run the interpreter in a process of its own, with this perflint at hand."""
    ran = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        env=inherited(**environment),
        check=False,
    )
    return Ran(ran.returncode, ran.stdout.decode("utf-8", "replace"), ran.stderr.decode("utf-8", "replace"))
