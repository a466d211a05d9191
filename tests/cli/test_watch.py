"""`perflint check --watch` as a user runs it: a process of its own, edits, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command
from tests.signals import HEED_INTERRUPTS

pty = pytest.importorskip("pty", reason="no terminals of this kind")

HELPER = "import torch\n\n\ndef read(x):\n    return x.item()\n"
COLD = "import torch\nfrom helper import read\n\n\ndef train(model, loader):\n    pass\n"
HOT = """\
import torch
from helper import read


def train(model, loader, optimizer):
    for x in loader:
        loss = model(x.cuda(non_blocking=True)).sum()
        loss.backward()
        optimizer.step()
        read(loss)
"""
LIMIT = 60.0


class Watching:
    """A running `perflint check --watch`, with the text that it has written."""

    def __init__(self, folder: Path, *options: str, terminal: bool = False) -> None:
        self.text = ""
        self._news = threading.Condition()
        read, write = pty.openpty() if terminal else os.pipe()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PERFLINT_")}
        command = [sys.executable, "-m", "perflint", "check", "--watch", "--select=TPF1", *options]
        environment = kept | {"PYTHONPATH": str(ROOT), "PERFLINT_CACHE_DIR": str(folder / ".cache")}
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=write, stderr=write, env=environment, preexec_fn=HEED_INTERRUPTS
        )
        os.close(write)
        self._reader = threading.Thread(target=self._read, args=(read,), daemon=True)
        self._reader.start()

    def _read(self, stream: int) -> None:
        while True:
            try:
                data = os.read(stream, 1 << 16)
            except OSError:
                # The terminal of a process that has ended.
                data = b""
            with self._news:
                self.text += data.decode()
                self._news.notify_all()
            if not data:
                os.close(stream)
                return

    def until(self, rounds: int) -> str:
        """Wait for the end of a number of checks; the text of the last one."""
        with self._news:
            assert self._news.wait_for(lambda: self.text.count("Ctrl-C ends.") >= rounds, LIMIT), self.text
            return self.text.split("Ctrl-C ends.")[rounds - 1]

    def interrupt(self) -> int:
        """Press Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(LIMIT)
        self._reader.join(LIMIT)
        return code


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project of two files without a finding."""
    (tmp_path / "pyproject.toml").write_text("[tool.perflint]\n")
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "train.py").write_text(COLD)
    return tmp_path


def test_an_edit_changes_the_findings_of_another_file(project: Path) -> None:
    watching = Watching(project, "helper.py", "--output-format=concise")
    assert "No findings" in watching.until(1)
    (project / "train.py").write_text(HOT)
    second = watching.until(2)
    assert "train.py changed." in second and "helper.py:5:12: TPF101" in second
    (project / "pyproject.toml").write_text("[tool.perflint]\nselct = []\n")
    assert "unknown key `selct`" in watching.until(3)
    (project / "pyproject.toml").write_text('[tool.perflint]\nignore = ["TPF101"]\n')
    assert "No findings" in watching.until(4)
    assert watching.interrupt() == 0
    assert "Traceback" not in watching.text and "KeyboardInterrupt" not in watching.text


def test_new_files_and_a_terminal(project: Path) -> None:
    watching = Watching(project, ".", "--no-cache", "--color=never", terminal=True)
    first = watching.until(1)
    assert "\x1b[2J" in first and "No findings in 2 files." in first
    (project / "more").mkdir()
    (project / "more" / "steps.py").write_text(HOT.replace("read(loss)", "loss.item()"))
    second = watching.until(2)
    assert second.index("\x1b[2J") < second.index("TPF101") and "changed." not in second
    (project / "more" / "steps.py").unlink()
    assert "No findings in 2 files." in watching.until(3)
    time.sleep(1)
    assert watching.text.count("Ctrl-C ends.") == 3
    assert watching.interrupt() == 0
    assert "Traceback" not in watching.text
    assert not (project / ".cache").exists()


@pytest.mark.parametrize("options", [("-",), (".", "--add-ignore"), (".", "--show-files"), (".", "--select=TPF555")])
def test_faults_end_it_at_once(perflint: Command, options: tuple[str, ...]) -> None:
    perflint.write("a.py", HELPER)
    ran = perflint("check", "--watch", *options)
    assert ran.code == 2 and "error:" in ran.err
