"""Closed and full streams, and interrupts at any time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import ROOT
from tests.signals import HEED_INTERRUPTS

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")

BAD = 'import torch\n\n\ndef scale(x: torch.Tensor):\n    return x * torch.ones(3).to("cuda")\n'
FIXED = BAD.replace('(3).to("cuda")', '(3, device="cuda")')
NO_SPACE = "error: standard output cannot be written: No space left on device\n"
CLOSED = "error: standard output cannot be written: Bad file descriptor\n"


# argparse passes over a full disk where Python does not buffer.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | {
    "PYTHONPATH": str(ROOT)
}


def run(folder: Path, command: str) -> tuple[int, str]:
    """A shell's command, in which `perflint` is this one: its exit code, and what it writes to standard error."""
    call = f'perflint() {{ "{sys.executable}" -m perflint "$@"; }}; {command}'
    ran = subprocess.run(["bash", "-c", call], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    return ran.returncode, ran.stderr


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        ("perflint check none.py 2>&-", 2, ""),
        ("perflint check none.py 2>/dev/full", 2, ""),
        ("perflint chek 2>&-", 2, ""),
        ("perflint chek 2>/dev/full", 2, ""),
        ("perflint check --nonsense 2>/dev/full", 2, ""),
        ("perflint check bad.py >&-", 2, CLOSED),
        ("perflint check bad.py >&- 2>&-", 2, ""),
        ("perflint check bad.py >/dev/full", 2, NO_SPACE),
        ("perflint check bad.py --output-format json >/dev/full", 2, NO_SPACE),
        ("perflint fix --unsafe-fixes bad.py >/dev/full", 2, NO_SPACE),
        ("perflint fix --unsafe-fixes --apply bad.py >&-", 0, "Fixed 1 finding in 1 file.\n"),
        ("perflint fix --unsafe-fixes - <bad.py >/dev/full", 2, NO_SPACE),
        ("perflint --version >/dev/full", 2, NO_SPACE),
        ("perflint --version >&-", 2, CLOSED),
        ("perflint --help >/dev/full", 2, NO_SPACE),
        ("perflint check --help >/dev/full", 2, NO_SPACE),
        ("perflint rule TPF101 >/dev/full", 2, NO_SPACE),
        ("perflint --version | true", 0, ""),
        ("set -o pipefail; perflint rules | true", 141, ""),
        ("set -o pipefail; perflint check --help | true", 141, ""),
        ("perflint check - <&-", 2, "error: -: standard input is closed\n"),
    ],
)
def test_streams(tmp_path: Path, command: str, code: int, told: str) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    assert run(tmp_path, command) == (code, told)


def test_a_working_directory_that_was_removed(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    gone = "mkdir d; cd d; rmdir ../d; "
    code, err = run(tmp_path, gone + "perflint check ../bad.py")
    assert (code, err.splitlines()[0]) == (2, "error: the working directory was removed")
    assert run(tmp_path, gone + "perflint --version")[0] == 0


INTERRUPTED = """
import signal, sys
at = int(sys.argv.pop(1))
calls = 0
def note(frame, event, argument):
    global calls
    calls += event == "call"
    if calls == at:
        sys.setprofile(None)
        signal.raise_signal(signal.SIGINT)
import perflint.cli.main
sys.setprofile(note)
code = perflint.cli.main.main()
if not at:
    print("calls:", calls, file=sys.stderr)
sys.exit(code)
"""


def interrupted(folder: Path, at: int) -> subprocess.CompletedProcess[str]:
    """`perflint fix --apply` of two files, interrupted at a call of a Python function; never for 0."""
    for name in ("a.py", "b.py"):
        (folder / name).write_text(BAD)
    (folder / "script").write_text(INTERRUPTED)
    return subprocess.run(
        [sys.executable, "script", str(at), "fix", "--apply", "--unsafe-fixes", "--isolated", "a.py", "b.py"],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        preexec_fn=HEED_INTERRUPTS,
    )


@pytest.mark.parametrize("points", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_an_interrupt_at_any_time_ends_the_run(tmp_path: Path, points: int) -> None:
    ran = interrupted(tmp_path, 0)
    assert ran.returncode == 0
    calls = int(ran.stderr.rpartition("calls: ")[2])
    for point in range(points):
        # More at the start, where most is imported; the first call is that of `main` itself.
        at = 2 + int(calls * (point / points) ** 2)
        ran = interrupted(tmp_path, at)
        assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", ""), at
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "b.py", "script"], at
        assert all((tmp_path / name).read_text() in (BAD, FIXED) for name in ("a.py", "b.py")), at
