"""Runs that are forked once a first one has shown what the program imports."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.tracer.probe import ProbeOptions
from perflint.verify import execution
from perflint.verify.execution import Program, Run
from perflint.verify.workspace import Workspace
from tests.sample import sample
from tests.verify.test_execution import runs

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX"),
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
]
TRAINING = """
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.utils.data.DataLoader(torch.rand(40, 4), batch_size=4, num_workers=1):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
"""
FACTS = (
    """
import json, os, sys, torch, own
facts = {"path": sys.path, "file": __file__, "argv": sys.argv, "folder": os.getcwd(), "own": own.value}
facts |= {"main": vars(sys.modules["__main__"]) is globals(), "spec": __spec__, "name": __name__}
facts |= {"random": torch.rand(1).item(), "leads": os.getpgrp() == os.getpid(), "input": sys.stdin.read()}
print(json.dumps(facts))
print("told", file=sys.stderr)
"""
    + TRAINING
)


@contextmanager
def program_in(folder: Path) -> Iterator[Program]:
    root = folder / "project"
    (root / "below").mkdir(parents=True)
    (root / "below" / "program.py").write_text(FACTS)
    (root / "below" / "own.py").write_text("value = 1\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setattr(execution, "_WORTH", 0.0)
        copy = Workspace(root)
        options = ProbeOptions(str(copy.output), str(root), str(copy.folder), (), 2, 5, 1)
        program = Program([sys.executable, "-u", "below/program.py", "a"], copy, options)
        yield program
        program.close()
        copy.close()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Program]:
    """A program of which nothing has run."""
    with program_in(tmp_path) as program:
        yield program


@pytest.fixture(scope="module")
def runs_of_one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, Run, Run]]:
    """A program, the run that started it, and the first run that was forked: two imports of torch for many tests."""
    with program_in(tmp_path_factory.mktemp("forked")) as program:
        first, again = program.run({}), program.run({})
        yield program, first, again


@pytest.fixture
def forked(runs_of_one: tuple[Program, Run, Run]) -> Iterator[Program]:
    """A program whose runs are forked, before and after the test."""
    program = runs_of_one[0]
    assert program._forked is not None
    yield program
    assert program._forked is not None


def changed(text: str, path: str = "below/program.py") -> dict[str, bytes]:
    return {path: text.encode()}


def test_a_fork_is_what_a_start_is(forked: Program, runs_of_one: tuple[Program, Run, Run]) -> None:
    _, first, again = runs_of_one
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
    told = forked.run(
        changed("import torch\nprint(torch.are_deterministic_algorithms_enabled())\n"), deterministic=True
    )
    assert told.out == "True\n"


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
    "environment": "import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport torch\n" + TRAINING,
    "failed": "import torch\nraise SystemExit(1)\n",
    "random numbers": "import os, torch\ntorch.manual_seed(os.getpid())\n" + TRAINING,
    "thread": "import torch, starts_thread\n" + TRAINING,
    "ended": "import torch, ends\n" + TRAINING,
    "hangs": "import torch, waits\n" + TRAINING,
    "differs": "import torch\nif 'fork' in open('/proc/self/cmdline').read(): 1 / 0\n" + TRAINING,
}
"""Programs whose fork would be another run than a start."""


@pytest.mark.parametrize("kind", sample(DIFFERENT, 3))
def test_it_is_started_where_a_fork_would_differ(
    started: Program, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    starts = "import threading, time\nthreading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n"
    (packages / "starts_thread.py").write_text(starts)
    ends = "import os\nif 'forking' in open('/proc/self/cmdline').read(): os._exit(0)\n"
    (packages / "ends.py").write_text(ends)
    waits = "import time\nif 'forking' in open('/proc/self/cmdline').read(): time.sleep(99)\n"
    (packages / "waits.py").write_text(waits)
    monkeypatch.setenv("PYTHONPATH", str(packages))
    first = started.run(changed(DIFFERENT[kind]))
    assert started.run(changed(DIFFERENT[kind])).status == first.status
    assert started._forked is None


@pytest.mark.parametrize("imports", ["import own", "import torch"])
def test_it_is_started_where_others_import_the_project(
    started: Program, imports: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork would have the module from before the change."""
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "plug.py").write_text(imports)
    monkeypatch.setenv("PYTHONPATH", f"{packages}{os.pathsep}{tmp_path / 'project' / 'below'}")
    (tmp_path / "project" / "below" / "program.py").write_text("import plug\n" + FACTS)
    assert started.run({}).status == 0
    assert json.loads(started.run(changed("value = 2\n", "below/own.py")).out)["own"] == 2
    assert (started._forked is None) == (imports == "import own")


def test_it_is_started_where_imports_take_no_time(started: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_WORTH", 100.0)
    assert started.run({}).status == started.run({}).status == 0
    assert started._forked is None


def test_it_is_started_if_the_interpreter_is_killed(started: Program) -> None:
    assert started.run({}).status == started.run({}).status == 0
    assert started._forked is not None
    os.kill(started._forked._process.pid, signal.SIGKILL)
    assert started.run({}).status == 0 and started._forked is None


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
def test_runs_follow_the_first_one(started: Program, step: str) -> None:
    """Slow steps are not all timed; without an optimizer only the first run is left to end by itself."""
    started._options = execution.replace(started._options, warmup=1, steps=1000, seconds=0.1)
    endless = ENDLESS.format(step)
    ended = endless.replace("itertools.count()", "range(60)")
    first = started.run(changed(ended))
    assert first.seen is not None and first.seen.stopped == ("optimizer" in step)
    started.follow(first)
    second = started.run(changed(endless), seconds=60)
    assert second.seen is not None and second.seen.stopped
    assert len(second.seen.times) == len(first.seen.times) >= 30
