"""A traced program behaves as under plain `python`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.tracer.file import read_trace
from tests.signals import HEED_INTERRUPTS
from tests.tracer import warm
from tests.tracer.device import ROOT, python, traced, written

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

OUTPUT = "perflint-trace.jsonl.gz"
INFO = (
    "import sys, gc, warnings\n"
    "print(sys.argv, sys.path[:2], sorted(globals()), __file__, type(__loader__), __package__, __doc__, __name__)\n"
    "print(sys.modules['__main__'].__dict__ is globals(), gc.isenabled(), sys.stdout.errors, sys.flags)\n"
    "print([entry for entry in sys.path if 'perflint' not in entry])\n"
)
PROGRAMS = {
    "information": INFO,
    "status": "import sys; print('a'); sys.exit(3)",
    "message": "import sys; sys.exit('no')",
    "no status": "raise SystemExit",
    "an odd status": "raise SystemExit([1])",
    "exception": "def f():\n    raise ValueError('boom')\nf()\n",
    "chained exception": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError('é') from error\n",
    "exception group": "raise ExceptionGroup('some', [ValueError(1), KeyError(2)])",
    "syntax error": "x = = 1\n",
    "own hook": "import sys\nsys.excepthook = lambda k, e, t: print('hook', k, t.tb_lineno, t.tb_next)\n1 / 0\n",
    "interrupt": "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n",
    "termination": "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(9)\n",
    "own handler": (
        "import os, signal, sys\nsignal.signal(signal.SIGTERM, lambda *a: sys.exit(9))\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    ),
    "abrupt exit": "import os; print('x', flush=True); os._exit(4)",
    "at exit": "import atexit\natexit.register(print, 'bye')\nprint('hello')\n",
    "error at exit": "import atexit\natexit.register(int, 'x')\n",
    "threads": (
        "import threading, time, sys\ndef f():\n    time.sleep(0.1)\n    print('late')\n    sys.exit(5)\n"
        "threading.Thread(target=f).start()\n"
    ),
    "error in a thread": "import threading\nt = threading.Thread(target=int, args='x')\nt.start()\nt.join()\n",
    "closed streams": "import sys; sys.stdout.close()",
    "own streams": "import sys, io\nsys.stderr = io.StringIO()\nprint('lost', file=sys.stderr)\n",
    "input": "print(input())",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)\n",
    "fork": "import os\npid = os.fork()\nif not pid:\n    raise SystemExit(2)\nprint(os.waitpid(pid, 0)[1])\n",
    "another folder": "import os\nos.chdir('/')\n",
    "recursion": "def f(): f()\ntry:\n    f()\nexcept RecursionError:\n    print('deep')\n",
}


def ended(folder: Path, *command: str) -> tuple[int, str, str]:
    """The end of a program, without what the tracer adds: a summary at the end of the standard error."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        input=b"given\n",
        capture_output=True,
        timeout=60,
        preexec_fn=HEED_INTERRUPTS,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode().partition("perflint trace: ")[0]


@pytest.mark.skipif(os.name == "nt", reason="signals and forks are POSIX's")
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_a_script(tmp_path: Path, text: str) -> None:
    (tmp_path / "program.py").write_bytes(text.encode())
    assert ended(tmp_path, "-m", "perflint", "trace", "program.py", "a", "-m", "--", "--steps") == ended(
        tmp_path, "program.py", "a", "-m", "--", "--steps"
    )
    lost = "os._exit" in text or ("SIGTERM" in text and "signal.signal" not in text)
    assert (tmp_path / OUTPUT).exists() is not lost


def test_a_program_that_fails_at_once_does_not_replace_a_trace(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys\nsys.exit('bad argument' if sys.argv[1:] else 0)\n")
    assert python(tmp_path, "-m", "perflint", "trace", "program.py", "bad").code == 1
    assert read_trace(tmp_path / OUTPUT).header.ended == "exit 1"
    assert python(tmp_path, "-m", "perflint", "trace", "program.py").code == 0
    before = (tmp_path / OUTPUT).read_bytes()
    done = python(tmp_path, "-m", "perflint", "trace", "program.py", "bad")
    assert done.code == 1 and (tmp_path / OUTPUT).read_bytes() == before
    assert "the program ended (exit 1) before anything was recorded" in done.err and "an earlier run" in done.err


def test_modules_folders_and_archives(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    for name in ("package/module.py", "package/failing.py"):
        (tmp_path / name).write_text(INFO + ("1 / 0\n" if "failing" in name else ""))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text(INFO)
    subprocess.run([sys.executable, "-m", "zipapp", "folder", "-o", "app.pyz"], cwd=tmp_path, check=True)
    for command in (
        ["-m", "package.module", "-m", "--", "x"],
        ["-m", "package.failing"],
        ["-m", "package"],
        ["-m", "nothing.here"],
        ["folder", "x"],
        ["app.pyz"],
    ):
        assert ended(tmp_path, "-m", "perflint", "trace", *command) == ended(tmp_path, *command), command


def test_flags_of_the_interpreter_stay(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys\nprint(__debug__, sys.warnoptions, sys.flags.utf8_mode)\n")
    flags = ["-O", "-W", "error::UserWarning", "-X", "utf8"]
    assert ended(tmp_path, *flags, "-m", "perflint", "trace", "program.py") == ended(tmp_path, *flags, "program.py")


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_an_interrupt_still_writes_the_trace(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "perflint", "trace", "program.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=HEED_INTERRUPTS,
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in err and "perflint trace:" in err
    assert read_trace(tmp_path / OUTPUT).header.ended == "interrupted"


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("", "finished"),
        ("sys.exit(0)", "finished"),
        ("sys.exit('x')", "exit 1"),
        ("sys.exit(7)", "exit 7"),
        ("1/0", "ZeroDivisionError"),
    ],
)
def test_the_trace_says_how_the_program_ended(tmp_path: Path, program: str, expected: str) -> None:
    trace, done = traced(tmp_path, program, "a", "--b")
    assert trace.header.ended == expected
    assert trace.header.program == ("program.py", "a", "--b")
    assert trace.header.torch == "" and trace.header.devices == ()
    assert "used no GPU" in done.err


FAILING = [
    ("device.sync()", 1),
    ("", 0),
    ("device.sync()\nsys.exit()", 1),
    ("device.sync()\nsys.exit(5)", 5),
    ("device.sync()\n1/0", 1),
    ("import perflint\nwith perflint.allow_sync('meant'): device.sync()", 0),
    ("import threading, time\nthreading.Timer(0.2, device.sync).start()", 1),
    ("import threading\ndef f():\n    device.sync()\nthreading.Timer(0.2, f).start()", 1),
]


@pytest.mark.parametrize(("program", "code"), FAILING)
def test_fail_on_sync(tmp_path: Path, program: str, code: int) -> None:
    written(tmp_path, program + "\n")
    done = warm.trace(tmp_path, "--warmup", "0", "--steps", "0", "--fail-on-sync", "program.py")
    assert done.code == code
    assert done.err.count("perflint trace:") == 1


def test_torch_is_watched_from_its_import_on_and_not_imported_for_the_program(tmp_path: Path) -> None:
    torch = (
        "import os\nos.environ['SEEN'] = '1'\nimport torch\nprint(torch.nn.Module.__init__.__wrapped__ is not None)\n"
    )
    trace, done = traced(tmp_path, "print('torch' in sys.modules)\n" + torch)
    assert done.out == "False\nTrue\n", done.err
    assert trace.header.torch


CHILDREN = """
import multiprocessing
import torch

def work(number):
    import os
    os.environ |= {"RANK": str(number), "WORLD_SIZE": "4"}
    device.sync()

if __name__ == "__main__":
    for number, method in enumerate(("spawn", "forkserver", "fork"), 1):
        child = multiprocessing.get_context(method).Process(target=work, args=(number,))
        child.start()
        child.join()
        print(method, child.exitcode)
"""


@pytest.mark.skipif(os.name == "nt", reason="forkserver is POSIX's")
def test_processes_that_the_program_starts(tmp_path: Path) -> None:
    _, done = traced(tmp_path, CHILDREN)
    assert done.out == "spawn 0\nforkserver 0\nfork 0\n", done.err
    # A process that is forked off has the trace of the first one, which writes it.
    assert sorted(path.name for path in tmp_path.glob("*.gz")) == [
        OUTPUT,
        "perflint-trace.rank1.jsonl.gz",
        "perflint-trace.rank2.jsonl.gz",
    ]
    for rank in (1, 2):
        header = read_trace(tmp_path / f"perflint-trace.rank{rank}.jsonl.gz").header
        assert (header.rank, header.world_size) == (rank, 4)


def test_ranks_of_torchrun_write_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print('hello')\n")
    done = python(tmp_path, "-m", "perflint", "trace", "-o", "a.b.gz", "program.py", RANK="3", WORLD_SIZE="4")
    assert done.out == "hello\n" and "(rank 3 of 4)" in done.err
    assert [path.name for path in tmp_path.glob("*.gz")] == ["a.rank3.b.gz"]


def test_a_program_that_overwrites_the_folder(tmp_path: Path) -> None:
    """The file cannot be written any more: the program ends as it does, and the error is told."""
    (tmp_path / "out").mkdir()
    (tmp_path / "program.py").write_text("import os\nos.rmdir('out')\nraise SystemExit(4)\n")
    done = python(tmp_path, "-m", "perflint", "trace", "-o", "out/a.gz", "program.py")
    assert done.code == 4
    assert "cannot be written" in done.err and "help: name another file" in done.err


def test_start_of_a_program_costs_little(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("pass\n")
    start = time.perf_counter()
    assert python(tmp_path, "-m", "perflint", "trace", "program.py").code == 0
    assert time.perf_counter() - start < 10
