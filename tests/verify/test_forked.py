"""Runs that are forked once a first one has shown what the program imports."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.verify import execution
from perflint.verify.execution import Program
from tests.sample import sample
from tests.tracer.device import WITHOUT_COMPILER
from tests.verify.forks import FACTS, TRAINING, Ran, changed, close, program_in
from tests.verify.test_execution import runs

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX"),
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
]


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """A program of which nothing has run."""
    program = program_in(tmp_path, WITHOUT_COMPILER, monkeypatch)
    yield program
    close(program)


@pytest.fixture
def unforked(runs_of_one: Ran, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The same program as it was after its first run."""
    monkeypatch.chdir(runs_of_one.program._workspace.root)
    monkeypatch.setenv("PYTHONPATH", str(runs_of_one.folder / "packages"))
    monkeypatch.setattr(execution, "_WORTH", 0.0)
    monkeypatch.setattr(runs_of_one.program, "_first", (runs_of_one.first, runs_of_one.imported))
    monkeypatch.setattr(runs_of_one.program, "_forked", None)
    return runs_of_one.program


def test_a_fork_is_what_a_start_is(forked: Program, runs_of_one: Ran) -> None:
    first, again = runs_of_one.first, runs_of_one.again
    assert json.loads(first.out) == json.loads(again.out)
    assert first.told == again.told == "told" and first.status == again.status == 0
    assert first.seen is not None and again.seen is not None
    assert first.seen.losses == again.seen.losses and first.seen.states == again.seen.states
    assert forked._forked is not None and again.seconds >= forked._forked.seconds


def test_changes_are_those_of_the_run(forked: Program) -> None:
    assert json.loads(forked.run(changed("value = 2\n", "below/own.py")).out)["own"] == 2
    assert json.loads(forked.run({}).out)["own"] == 1
    other, same = (json.loads(forked.run({}, reseed=reseed).out)["random"] for reseed in (True, False))
    assert other != same


def test_a_program_chooses_no_kernels_by_their_time_if_they_are_to_be_deterministic(forked: Program) -> None:
    text = (
        "import torch\ntorch.backends.cudnn.benchmark = True\n"
        "print(torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark)\n"
    )
    assert forked.run(changed(text), deterministic=True).out == "True False\n"
    assert forked.run(changed(text), deterministic=False).out == "False True\n"


def test_failures_are_seen(forked: Program) -> None:
    failed = forked.run(changed("import torch\nraise ValueError('wrong')\n"))
    assert failed.failed and failed.status == 1 and failed.told.endswith("ValueError: wrong")
    assert forked.run(changed("import sys\nsys.exit(3)\n")).status == 3
    assert forked.run(changed("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")).status == -signal.SIGKILL
    late = forked.run(changed("import atexit\natexit.register(print, 'end')\nprint('main')\n"))
    assert late.out == "main\nend\n" and late.status == 0


def test_a_run_that_takes_too_long_ends_with_what_it_started(forked: Program) -> None:
    text = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)'])\n"
        "print(child.pid, flush=True)\ntime.sleep(99)\n"
    )
    began = time.monotonic()
    run = forked.run(changed(text), seconds=3)
    assert run.status is None and run.failed and time.monotonic() - began < 30
    assert not runs(run.out.strip())
    assert forked.run({}).status == 0


def test_an_interrupt_ends_the_run(forked: Program, tmp_path: Path) -> None:
    text = (
        f"import os, signal, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        f"os.kill({os.getpid()}, signal.SIGINT)\ntime.sleep(99)\n"
    )
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            forked.run(changed(text))
    finally:
        signal.signal(signal.SIGINT, before)
    assert not runs((tmp_path / "pid").read_text())


DIFFERENT = {
    "environment": "import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport light, torch\n" + TRAINING,
    "failed": "import torch\nraise SystemExit(1)\n",
    "random numbers": "import light, os, torch\ntorch.manual_seed(os.getpid())\n" + TRAINING,
    "thread": "import light, torch, starts_thread\n" + TRAINING,
    "ended": "import light, torch, ends\n" + TRAINING,
    "hangs": "import light, torch, waits\n" + TRAINING,
    "differs": "import light, torch\nif 'fork' in open('/proc/self/cmdline').read(): 1 / 0\n" + TRAINING,
}
"""Programs whose fork would be another run than a start."""


@pytest.mark.parametrize("kind", sample(DIFFERENT, 3))
def test_it_is_started_where_a_fork_would_differ(started: Program, kind: str, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    starts = "import threading, time\nthreading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n"
    (packages / "starts_thread.py").write_text(starts)
    ends = "import os\nif 'forking' in open('/proc/self/cmdline').read(): os._exit(0)\n"
    (packages / "ends.py").write_text(ends)
    waits = "import time\nif 'forking' in open('/proc/self/cmdline').read(): time.sleep(99)\n"
    (packages / "waits.py").write_text(waits)
    assert (started.run(changed(DIFFERENT[kind])).status == 1) == (kind == "failed")
    # Another run is started, and need not import torch for that.
    assert started.run(changed("print('started')")).out == "started\n"
    assert started._forked is None


def test_it_is_started_where_others_import_the_project(
    started: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork would have the module from before the change."""
    packages = tmp_path / "packages"
    (packages / "plug.py").write_text("import own")
    monkeypatch.setenv("PYTHONPATH", f"{packages}{os.pathsep}{tmp_path / 'project' / 'below'}")
    (tmp_path / "project" / "below" / "program.py").write_text("import plug\n" + FACTS)
    assert started.run({}).status == 0
    assert json.loads(started.run(changed("value = 2\n", "below/own.py")).out)["own"] == 2
    assert started._forked is None


def test_it_is_started_where_imports_take_no_time(unforked: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_WORTH", 100.0)
    assert unforked.run(changed("print('started')")).out == "started\n"
    assert unforked._forked is None


def test_it_is_started_if_the_interpreter_is_killed(unforked: Program) -> None:
    assert unforked.run(changed("print('forked')")).out == "forked\n"
    assert unforked._forked is not None
    os.kill(unforked._forked._process.pid, signal.SIGKILL)
    assert unforked.run(changed("print('started')")).out == "started\n" and unforked._forked is None


ENDLESS = """
import itertools, time, torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in itertools.count():
    {}
    time.sleep(0.02)
"""


@pytest.mark.parametrize(
    "step", ["model(torch.rand(3, 4)).sum().backward(); optimizer.step()", "model(torch.rand(3, 4))"]
)
def test_runs_follow_the_first_one(forked: Program, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow steps are not all timed; without an optimizer only the first run is left to end by itself."""
    slow = execution.replace(forked._options, warmup=1, steps=1000, seconds=0.1)
    monkeypatch.setattr(forked, "_options", slow)
    endless = ENDLESS.format(step)
    ended = endless.replace("itertools.count()", "range(60)")
    first = forked.run(changed(ended))
    assert first.seen is not None and first.seen.stopped == ("optimizer" in step)
    forked.follow(first)
    second = forked.run(changed(endless), seconds=60)
    assert second.seen is not None and second.seen.stopped
    assert len(second.seen.times) == len(first.seen.times) >= 30
