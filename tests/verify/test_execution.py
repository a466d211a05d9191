"""Programs in the copy: whose modules they import, what they see, and what is seen of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from perflint.config.errors import ConfigurationError
from perflint.tracer.probe import ProbeOptions
from perflint.tracer.steps import StepSource
from perflint.verify.execution import Program, Run, _reports, _seen, runnable
from perflint.verify.workspace import Workspace
from tests.verify.forks import forked_run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX")
WHERE = "import os, sys\nprint(os.getcwd(), __file__, sys.argv[1:], os.path.exists('data.txt'))\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = (tmp_path / "project").resolve()
    for name in ("pkg", "src/lib/sub"):
        (root / name).mkdir(parents=True)
    (root / "data.txt").write_text("data")
    (root / "program.py").write_text(WHERE)
    (root / "pkg" / "__init__.py").touch()
    (root / "pkg" / "main.py").write_text("from . import other\n" + WHERE)
    (root / "pkg" / "other.py").write_text("print(__name__)\n")
    (root / "src" / "lib" / "__init__.py").write_text("from .sub import value\n")
    (root / "src" / "lib" / "sub" / "__init__.py").write_text("value = 'original'\n")
    monkeypatch.chdir(root)
    return root


def ran(
    root: Path,
    *command: str,
    changes: dict[str, bytes] | None = None,
    seconds: float | None = 120,
    reseed: bool = False,
    deterministic: bool = False,
    **options: int,
) -> tuple[Run, str]:
    """A run, and where its copy was."""
    copy = Workspace(root)
    settings = ProbeOptions(str(copy.output), str(root), str(copy.folder), tuple(copy.shared), **options)
    try:
        with closing(Program(command, copy, settings)) as program:
            return program.run(changes or {}, seconds, reseed, deterministic), str(copy.folder)
    finally:
        copy.close()


def runs(process: str) -> bool:
    """True if a process still runs; one that was killed may take a moment."""
    for _ in range(100):
        state = subprocess.run(["ps", "-o", "stat=", "-p", process], capture_output=True, text=True).stdout.strip()
        if not state or state.startswith("Z"):
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "program.py", "a", "--b"],
        ["program.py", "a", "--b"],
        ["./program.py", "a", "--b"],
        ["sh", "-c", f"exec {sys.executable} program.py a --b"],
    ],
)
def test_forms_of_the_command(project: Path, command: list[str]) -> None:
    run, copy = ran(project, *command)
    assert run.out.split("\n")[0].replace("/./", "/").replace(" program.py", f" {copy}/program.py") == (
        f"{copy} {copy}/program.py ['a', '--b'] True"
    ), run.told
    assert run.status == 0 and run.seen is None and not run.failed


def test_modules_run_from_the_copy(project: Path) -> None:
    run, copy = ran(project, sys.executable, "-m", "pkg.main")
    assert run.out == f"pkg.other\n{copy} {copy}/pkg/main.py [] True\n", run.told


def test_full_paths_and_folders_below(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "pkg")
    run, copy = ran(project, sys.executable, str(project / "program.py"), f"--data={project}/data.txt", "/other")
    assert run.out == f"{copy}/pkg {copy}/program.py ['--data={copy}/data.txt', '/other'] False\n", run.told


def test_files_are_changed_and_the_original_is_not(project: Path) -> None:
    (project / "program.py").write_text("open('data.txt', 'w').write('over')\nopen('new', 'w')\nprint(1)\n")
    run, _ = ran(project, "program.py", changes={"program.py": b"print(2)\n"})
    assert run.out == "2\n"
    run, _ = ran(project, "program.py")
    assert run.out == "1\n" and (project / "data.txt").read_text() == "data" and not (project / "new").exists()


@pytest.mark.parametrize("kind", ["path entry", "finder", "environment"])
def test_an_editable_install_leads_to_the_copy(project: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = project / "src"
    finder = (
        "from importlib.util import spec_from_file_location\nclass Finder:\n"
        "    @classmethod\n    def find_spec(cls, name, path=None, target=None):\n        if name == 'lib':\n"
        f"            return spec_from_file_location('lib', '{source}/lib/__init__.py')\nsys.meta_path.append(Finder)\n"
    )
    setup = {"path entry": f"sys.path.append('{source}')\n", "finder": finder, "environment": ""}[kind]
    if kind == "environment":
        monkeypatch.setenv("PYTHONPATH", str(source))
    (project / "program.py").write_text(f"import sys\n{setup}import lib\nprint(lib.__file__, lib.value)\n")
    run, copy = ran(project, "program.py", changes={"src/lib/sub/__init__.py": b"value = 'fixed'\n"})
    assert run.out == f"{copy}/src/lib/__init__.py fixed\n", run.told


def test_namespace_packages_lead_to_the_copy(project: Path) -> None:
    (project / "src" / "lib" / "__init__.py").unlink()
    (project / "program.py").write_text(
        f"import sys\nsys.path.append('{project}/src')\nimport lib.sub\nprint(lib.sub)\n"
    )
    run, copy = ran(project, "program.py")
    assert f"{copy}/src/lib/sub/__init__.py" in run.out, run.told


def test_the_environment_is_the_programs_own(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another sitecustomize is imported, too, and the hook's folder is nobody's."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("print('own')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "own"))
    (project / "program.py").write_text(
        "import sys, sitecustomize\nprint(sitecustomize.__file__)\n"
        "print([entry for entry in sys.path if 'perflint' in entry and 'hook' in entry], 'torch' in sys.modules)\n"
        "sys.stdin.read()\nsys.exit(3)\n"
    )
    run, _ = ran(project, "program.py")
    assert run.out == f"own\n{tmp_path}/own/sitecustomize.py\n[] False\n", run.told
    assert run.status == 3 and run.failed


def test_a_program_has_no_input(project: Path) -> None:
    (project / "program.py").write_text("import sys\nprint(repr(sys.stdin.read()))\n")
    own = os.dup(0)
    with open(project / "data.txt") as data:
        os.dup2(data.fileno(), 0)
    try:
        assert ran(project, "program.py")[0].out == "''\n"
    finally:
        os.dup2(own, 0)
        os.close(own)


def test_a_program_that_takes_too_long(project: Path) -> None:
    """What it started ends with it."""
    (project / "program.py").write_text(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)'])\n"
        "print(child.pid, flush=True)\ntime.sleep(99)\n"
    )
    run, _ = ran(project, "program.py", seconds=3)
    assert run.status is None and run.failed and run.seconds < 30
    assert not runs(run.out.strip())


def test_an_interrupt_ends_the_program(project: Path, tmp_path: Path) -> None:
    (project / "program.py").write_text(
        f"import os, signal, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "os.kill(os.getppid(), signal.SIGINT)\ntime.sleep(99)\n"
    )
    # Some shells ignore it in background jobs.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ran(project, "program.py")
    finally:
        signal.signal(signal.SIGINT, before)
    assert not runs((tmp_path / "pid").read_text())


@pytest.mark.parametrize(("deterministic", "told"), [(False, "None"), (True, ":4096:8")])
def test_deterministic_kernels_are_asked_for(project: Path, deterministic: bool, told: str) -> None:
    (project / "program.py").write_text("import os\nprint(os.environ.get('CUBLAS_WORKSPACE_CONFIG'))\n")
    assert ran(project, "program.py", deterministic=deterministic)[0].out == f"{told}\n"


def test_what_a_program_leaves_running_is_ended(project: Path) -> None:
    (project / "program.py").write_text(
        "import subprocess, sys\nprint(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)']).pid)\n"
    )
    run, _ = ran(project, "program.py")
    assert run.status == 0 and not runs(run.out.strip())


def test_a_program_that_fails(project: Path) -> None:
    (project / "program.py").write_text("raise KeyError('x')\n")
    run, _ = ran(project, "program.py")
    assert run.status == 1 and run.failed and run.told.endswith("KeyError: 'x'")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["./nothing.py"], "there is no file ./nothing.py"),
        (["no-such-command"], "there is no command `no-such-command`"),
        (["python3", "nothing.py"], "there is no file nothing.py"),
        ([sys.executable, "-uB", "nothing.py", "--steps", "3"], "there is no file nothing.py"),
        (["./data.txt"], "./data.txt is not executable"),
    ],
)
def test_commands_that_cannot_be_run(project: Path, command: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ran(project, *command)
    assert message == caught.value.message


@pytest.mark.parametrize(
    "command",
    [
        ["python3", "-m", "nothing"],
        ["python3", "-c", "pass"],
        ["python3", "-W", "ignore", "program.py"],
        ["python3", "-"],
        ["python3"],
        ["sh", "nothing.py"],
    ],
)
def test_commands_without_a_script_that_could_be_missing(project: Path, command: list[str]) -> None:
    assert runnable(command) == command


def test_a_working_directory_elsewhere(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="not in") as caught:
        ran(project, "sh", "-c", "true")
    assert caught.value.help == "start perflint in the project, or name its --root"


def test_a_program_of_the_working_directory_is_not_looked_for_elsewhere(project: Path) -> None:
    (project / "tool").write_text("#!/bin/sh\necho own\n")
    (project / "tool").chmod(0o755)
    assert runnable(["tool", "x"]) == ["./tool", "x"] and runnable(["pkg/../tool"]) == ["pkg/../tool"]
    assert ran(project, "tool")[0].out == "own\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX")
@pytest.mark.parametrize(
    ("command", "may_be_forked"),
    [
        ([sys.executable, "program.py"], True),
        ([sys.executable, "-u", "program.py"], True),
        ([sys.executable, "-m", "pkg.main"], False),
        (["sh", "-c", "program.py"], False),
    ],
)
def test_runs_of_a_script_may_be_forked(project: Path, command: list[str], may_be_forked: bool) -> None:
    copy = Workspace(project)
    assert Program(command, copy, ProbeOptions("", "", ""))._lists is may_be_forked
    copy.close()


@pytest.mark.parametrize(("seed", "told"), [(5, "5"), (2**32 + 7, "7")])
def test_the_seed_of_hashes_fits_python(project: Path, seed: int, told: str) -> None:
    (project / "program.py").write_text("import os\nprint(os.environ.get('PYTHONHASHSEED'))\n")
    assert ran(project, "program.py", seed=seed)[0].out == f"{told}\n"


def test_of_equal_processes_the_first_rank_counts(tmp_path: Path) -> None:
    seen = {"torch": "2.13", "source": 3, "clock": "host", "times": [1.0], "losses": [], "stopped": False}
    seen |= {"problems": [], "memory": 0, "states": {}, "look": None}
    for name, rank in (("a", "1"), ("b", "0"), ("c", "2")):
        (tmp_path / f"{name}.json").write_text(json.dumps(seen | {"rank": rank, "device": name}))
    found = _seen(_reports(tmp_path))
    assert found is not None and found.device == "b"
    # But for more steps, or a better source of them.
    (tmp_path / "d.json").write_text(json.dumps(seen | {"rank": "3", "device": "d", "times": [1.0, 2.0]}))
    found = _seen(_reports(tmp_path))
    assert found is not None and found.device == "d"


TRAINING = """
import random, sys, torch
torch.manual_seed(3)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
x = torch.ones(8, 4)
for step in range(12):
    for part in range(2):
        loss = model(x).pow(2).mean()
        print(repr(loss.item()))
        if part:
            scaler.scale(loss).backward()
        else:
            torch.autograd.backward([loss])
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
print("end", random.random())
"""


def test_what_is_seen_of_a_training(forked: Program) -> None:
    run = forked_run(forked, TRAINING, warmup=4, seed=1)
    assert run.status == 0 and run.seen is not None, run.told
    *printed, last = run.out.splitlines()
    assert [str(loss) for _, loss in run.seen.losses] == printed
    assert [step for step, _ in run.seen.losses] == [step for step in range(12) for _ in range(2)]
    assert len(run.seen.times) == 8 and run.ms is not None and run.ms > 0
    assert (run.seen.source, run.seen.clock, run.seen.device) == (StepSource.OPTIMIZER, "host", "")
    assert last == "end 0.13436424411240122" and not run.seen.stopped and not run.seen.problems
    # Other seeds, and an end after some steps.
    other = forked_run(forked, TRAINING, warmup=2, steps=3, seed=1, reseed=True)
    assert other.seen is not None and other.seen.stopped and not other.failed and other.status == 0
    assert len(other.seen.times) == 3 and len(other.seen.losses) == 10 and "end" not in other.out
    assert other.seen.losses[0] != run.seen.losses[0]


CALLS = """
import torch
model = torch.nn.Linear(4, 4)
try:
    for step in range(20):
        model(torch.ones(1, 4))
except BaseException:
    print("caught")
    raise
print("whole")
"""


LOOP = """
import torch
model = torch.nn.Linear(4, 1)
data = torch.arange(80.0).reshape(20, 4)
with torch.no_grad():
    for x in {}:
        model(x)
"""


@pytest.mark.parametrize(
    ("loop", "source"),
    [("data", StepSource.MODULE), ("torch.utils.data.DataLoader(data, 1)", StepSource.LOADER)],
)
def test_what_models_return_stands_for_losses(forked: Program, loop: str, source: StepSource) -> None:
    run = forked_run(forked, LOOP.format(loop), warmup=12, seed=1, looks=True)
    assert run.seen is not None and run.seen.source == source
    assert len(run.seen.losses) in (11, 12) and run.seen.losses[1][1] > run.seen.losses[0][1] > 0
    assert not forked_run(forked, LOOP.format(loop), warmup=12).seen.losses  # type: ignore[union-attr]


def test_only_an_optimizer_ends_the_program(forked: Program) -> None:
    """Batches or calls may be those of something that is only prepared."""
    run = forked_run(forked, CALLS, warmup=2, steps=5)
    assert run.out == "whole\n" and run.seen is not None and not run.seen.stopped
    assert run.seen.source == StepSource.MODULE and len(run.seen.times) == 5 and not run.seen.losses


WAITING = """
import time, torch
model = torch.nn.Linear(4, 4)
{}
for step in range(400):
    model(torch.ones(1, 4))
    time.sleep(0.005)
"""


@pytest.mark.parametrize(
    ("line", "stopped"), [("", True), ("optimizer = torch.optim.SGD(model.parameters(), 0.1)", False)]
)
def test_a_program_without_an_optimizer_is_ended_after_a_while(forked: Program, line: str, stopped: bool) -> None:
    run = forked_run(forked, WAITING.format(line), warmup=2, steps=5, patience=0.1)
    assert run.seen is not None and run.seen.stopped == stopped and run.status == 0


def test_a_program_that_will_not_end(forked: Program) -> None:
    text = (
        "import torch\nmodel = torch.nn.Linear(2, 1)\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for step in range(1000):\n    try:\n"
        "        model(torch.ones(1, 2)).sum().backward()\n        optimizer.step()\n"
        "    except BaseException as error:\n        print(type(error).__name__)\n"
    )
    run = forked_run(forked, text, warmup=1, steps=2)
    assert run.out == "SystemExit\n" and run.seen is not None and len(run.seen.times) == 2 and not run.failed


@pytest.mark.parametrize("fails", [False, True])
def test_processes_that_wait_for_the_program_are_ended(forked: Program, fails: bool) -> None:
    text = (
        "import torch\nfrom multiprocessing import Pipe, Process\nhere, there = Pipe()\n"
        "Process(target=there.recv).start()\n"
        "model = torch.nn.Linear(2, 1)\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for step in range(1000):\n    model(torch.ones(1, 2)).sum().backward()\n    optimizer.step()\n"
        + "    assert step < 1\n"
        * fails
    )
    run = forked_run(forked, text, seconds=60, warmup=1, steps=2)
    assert run.status == fails and run.seen is not None and run.seen.stopped is not fails
