"""`perflint verify` from end to end: real programs, on the CPU."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.cli import verify
from perflint.findings import Safety
from perflint.rules.registry import RuleSet
from perflint.tracer.events import Header
from perflint.tracer.file import write_trace
from perflint.tracer.trace import Trace
from perflint.verify.execution import Run
from tests.cli.command import ROOT, Command
from tests.cli.test_fix import Toy
from tests.signals import HEED_INTERRUPTS
from tests.tracer.device import WITHOUT_COMPILER
from tests.verify.runs import run

pytestmark = [
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.skipif(os.name == "nt", reason="POSIX"),
]

MODEL = "from torch import nn\n\n\ndef build():\n    return nn.Linear(4, 3)\n"
TRAIN = """import sys
from pathlib import Path

import torch
from torch.nn import functional as F

from .model import build


def train(steps):
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = build().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scale = float(Path("data/scale.txt").read_text())
    batches = [(torch.randn(8, 4) * scale, torch.randint(3, (8,))) for _ in range(steps)]
    total = 0.0
    for x, y in batches:
        x, y = x.to(device), y.to(device)
        with torch.cuda.amp.autocast(enabled=False):
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    Path("result.txt").write_text(str(total))
    Path("data/scale.txt").write_text("0")
    print("done")


train(int(sys.argv[1]))
"""


def project(perflint: Command) -> dict[str, bytes]:
    """A package with relative imports, data and a git folder; its files."""
    perflint.write("pyproject.toml", "[project]\nname = 'x'\ndependencies = ['torch>=2.6']\n")
    perflint.write("pkg/__init__.py", "")
    perflint.write("pkg/model.py", MODEL)
    perflint.write("pkg/train.py", TRAIN)
    perflint.write("data/scale.txt", "2.5")
    perflint.write(".git/HEAD", "ref")
    return files(perflint.folder)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_fixes_that_are_good_are_written(perflint: Command) -> None:
    before = project(perflint)
    command = ["--warmup", "2", "--repeat", "2", "--", sys.executable, "-m", "pkg.train", "9"]
    ran = perflint("fix", "--verify", "--apply", "--unsafe-fixes", "pkg", *command)
    assert "2 fixes to verify in 1 file, in about 6 runs.\n" in ran.err
    assert re.search(r"\nAbout 6 runs take \d+ (?:s|min) if no fix does harm, more if one does\.\n", ran.err)
    assert "7 steps after warm-up (counted by optimizer.step()), on the clock of the CPU" in ran.err
    assert "of the original have the same losses bit for bit." in ran.err
    assert "All 9 losses are the same bit for bit." in ran.err
    after = files(perflint.folder)
    changed = after.pop("pkg/train.py").decode()
    assert after == {name: data for name, data in before.items() if name != "pkg/train.py"}
    if ran.code == 0:
        assert "Kept 2 fixes:\n  pkg/train.py:20  [*] TPF902 deprecated-amp\n  pkg/train.py:25  [~] TPF101" in ran.err
        assert 'with torch.amp.autocast("cuda", enabled=False):\n' in changed and "total = float(total)" in changed
    else:
        # On a busy machine a step may seem to take longer, and then nothing else is said against a fix.
        assert ran.code == 1 and ran.err.count("times as long") == ran.err.count("  pkg/train.py:") > 0


class Slow(Toy):
    code, name, new = "TPF001", "quick", "slow"


class Wrong(Toy):
    code, name, new = "TPF002", "right", "wrong"


class Fatal(Toy):
    code, name, new, safety = "TPF003", "fine", "fatal", Safety.UNSAFE


PROGRAM = (
    "import time; "
    + WITHOUT_COMPILER
    + """\
WORDS = {"slow": 0.03, "wrong": 1.5, "fatal": "no number"}
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(8):
    time.sleep(WORDS.get("quick", 0.005))
    loss = model(torch.ones(2, 4)).pow(2).mean() * WORDS.get("right", 1.0) + 1.0 * WORDS.get("fine", 0)
    loss.backward()
    optimizer.step()
"""
)


def with_toys(perflint: Command, monkeypatch: pytest.MonkeyPatch, *rules: type[Toy]) -> None:
    """A program with words that the rules replace."""
    monkeypatch.setattr(verify, "active_rules", lambda settings: RuleSet([rule() for rule in rules]))
    perflint.write("train.py", PROGRAM)


OPTIONS = ["--warmup", "1", "--repeat", "2", "--seed", "5"]


@pytest.mark.slow
def test_what_slows_down_is_dropped(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a program that is not reproducible: its losses go through four values, from run to run."""
    with_toys(perflint, monkeypatch, Slow)
    counter = str(perflint.folder.parent / f"{perflint.folder.name}.runs")
    count = f"runs = {counter!r}; open(runs, 'a').write('x'); noise = os.path.getsize(runs) % 4 / 10"
    text = PROGRAM.replace("import time;", f"import time, torch, os; {count}; torch.manual_seed(0);")
    perflint.write("train.py", text.replace("    loss.backward()", "    (loss + noise).backward()"))
    ran = perflint("verify", "--warmup", "1", "--repeat", "2", "--output-format", "json", "--", "train.py")
    assert ran.code == 1, ran.err
    document = json.loads(ran.out)
    assert document["kept"] == [] and document["diff"] == "" and document["measure"] == "loss"
    (slow,) = document["dropped"]
    assert (slow["code"], slow["path"], slow["line"], slow["safety"]) == ("TPF001", "train.py", 6, "safe")
    assert slow["reason"].startswith("a step takes ")
    assert document["timing"]["slower"] is True and document["timing"]["ratio"] > 1
    assert len(document["losses"]["before"][0]) == 8 and document["losses"]["noise"] > 0
    assert document["program"]["steps"] == 7
    assert "The 4 runs of the original differ from each other by up to" in ran.err
    assert "ratio" in ran.err and "slower\n" in ran.err


@pytest.mark.slow
def test_what_changes_results_is_dropped(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with_toys(perflint, monkeypatch, Wrong)
    ran = perflint("verify", *OPTIONS, "--", "train.py")
    assert ran.code == 1 and ran.out == "", ran.err
    assert "Dropped 1 fix:\n  train.py:7  [*] TPF002 right\n    loss 1 changes from " in ran.err
    assert "and a safe fix must not change it\n" in ran.err


def test_what_breaks_the_program_is_dropped(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with_toys(perflint, monkeypatch, Fatal)
    ran = perflint("verify", "--apply", "--unsafe-fixes", *OPTIONS, "--", "train.py")
    assert ran.code == 1 and ran.out == "", ran.err
    assert "Dropped 1 fix:\n  train.py:7  [~] TPF003 fine\n    the program failed with status 1: TypeError" in ran.err
    assert (perflint.folder / "train.py").read_text() == PROGRAM


def test_a_program_that_fails(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with_toys(perflint, monkeypatch, Fatal)
    perflint.write("train.py", "import sys\nprint('to the log', file=sys.stderr)\nword = 'fine'\n1 / 0\n")
    ran = perflint("verify", "--unsafe-fixes", "--", "train.py")
    assert ran.code == 1 and ran.out == ""
    assert "error: without any fix, the program failed with status 1: ZeroDivisionError: division by zero" in ran.err
    assert "help: it runs in a copy" in ran.err and "to the log" in ran.err
    perflint.write("train.py", "word = 'fine'\n")
    ran = perflint("verify", "--unsafe-fixes", "--", "train.py")
    assert ran.code == 1 and "error: no steps of the program were timed\n  help: a step is" in ran.err


def test_nothing_to_verify(perflint: Command) -> None:
    perflint.write("train.py", "import torch\n")
    ran = perflint("verify", "--", "train.py")
    assert (ran.code, ran.out, ran.err) == (0, "", "Nothing to fix, so there is nothing to verify.\n")
    perflint.write("bad.py", "def f(:\n")
    assert perflint("verify", "--", "train.py").code == 2


def test_a_file_that_is_not_copied_is_not_fixed(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with_toys(perflint, monkeypatch, Fatal)
    perflint.write("shared/a.py", "word = 'fine'\n")
    ran = perflint("verify", "--unsafe-fixes", "--share", "shared", "shared", "--", "train.py")
    assert ran.code == 0 and "shared/a.py is not part of the copy, so it is not fixed" in ran.err


def test_with_a_trace_only_what_it_confirms_is_tried(perflint: Command) -> None:
    project(perflint)
    header = Header(
        perflint="0.1.0", python="3.12", torch="2.11", devices=(), program=(), root=str(perflint.folder), started="",
        step_source="optimizer", warmup=0, steps=0, steps_per_window=1, ended="finished", lines_recorded=True,
    )  # fmt: skip
    write_trace(perflint.folder / "t.gz", Trace(header, ()))
    ran = perflint("verify", "--unsafe-fixes", "--trace", "t.gz", "--", sys.executable, "-m", "pkg.train", "9")
    assert (ran.code, ran.out) == (0, "") and ran.err.endswith("Nothing to fix, so there is nothing to verify.\n")


class Simulated:
    """A program whose runs take three seconds of a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.limits: list[float | None] = []
        self.told: list[str] = []
        monkeypatch.setattr(verify, "Program", lambda *_: self)
        monkeypatch.setattr(verify, "time", self)

    def monotonic(self) -> float:
        return self.now

    def run(self, changes: object, seconds: float | None, reseed: bool) -> Run:
        self.limits.append(seconds)
        if seconds is not None and seconds < 3.0:
            self.now += seconds
            return replace(run(status=None), seconds=seconds)
        self.now += 3.0
        is_slow = any(b"slow" in text for text in changes.values())  # type: ignore[attr-defined]
        return run([1.0, 0.5], times=[50.0 if is_slow else 10.0])

    def close(self) -> None:
        pass


def test_a_time_budget_ends_with_what_is_decided(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four runs show that both together are slow, eight that one is; the budget ends before the other is tried."""
    with_toys(perflint, monkeypatch, Slow, Wrong)
    program = Simulated(monkeypatch)
    budget = ["--time-budget", "60", "--output-format", "json", "--apply"]
    ran = perflint("verify", *OPTIONS, *budget, "--", sys.executable, "train.py")
    assert ran.code == 1 and program.now <= 160
    assert "2 fixes to verify in 1 file, in about 4 runs.\n" in ran.err
    assert "About 4 runs take 12 s if no fix does harm" in ran.err
    found = json.loads(ran.out)
    assert found["stopped"] == "the time budget of 60 s is spent"
    decided = [[one["code"] for one in found[part]] for part in ("kept", "dropped", "undecided")]
    assert decided == [[], ["TPF001"], ["TPF002"]] and found["diff"] == ""
    assert re.search(r"perflint verify: stopped after \d+ runs: the time budget of 60 s is spent\.", ran.err)
    assert "Dropped 1 fix:\n  train.py:6  [*] TPF001" in ran.err and "Not decided, 1 fix:\n  train.py:7" in ran.err
    assert "warning: nothing was written, because the verification is not complete" in ran.err
    assert (perflint.folder / "train.py").read_text() == PROGRAM


def test_a_run_does_not_outlast_the_time_budget(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with_toys(perflint, monkeypatch, Wrong)
    program = Simulated(monkeypatch)
    ran = perflint("verify", *OPTIONS, "--time-budget", "2.5", "--", sys.executable, "train.py")
    assert ran.code == 1 and program.limits == [2.5]
    assert "stopped after 0 runs: the time budget of 2.5 s is spent" in ran.err and "About" not in ran.err
    assert "stopped" not in perflint("verify", *OPTIONS, "--time-budget", "99", "--", sys.executable, "train.py").err


@pytest.mark.parametrize(("number", "reason", "status"), [(2, "interrupted", 130), (15, "terminated", 143)])
def test_a_signal_ends_with_what_is_decided_and_leaves_nothing_behind(
    perflint: Command, number: int, reason: str, status: int
) -> None:
    project(perflint)
    perflint.write("requirements.txt", "torch>=2.4\n")
    perflint.write("wait.py", "import os, sys, time\nopen(sys.argv[1], 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
    temporary = perflint.folder.parent / f"{perflint.folder.name}-temporary"
    temporary.mkdir()
    pid = temporary.parent / f"{temporary.name}.pid"
    command = [sys.executable, "-m", "perflint", "verify", "pkg", "--", sys.executable, "wait.py", str(pid)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        command,
        cwd=perflint.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=HEED_INTERRUPTS,
    )
    until = time.monotonic() + 60
    while not (pid.exists() and pid.read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(number)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (status, "")
    assert f"perflint verify: stopped after 0 runs: {reason}. This is not the whole result.\n" in err
    assert "Not decided, 1 fix:\n  pkg/train.py:20  [*] TPF902" in err
    assert list(temporary.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), signal.SIG_DFL)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "error: there is no program to run\n  help: perflint verify"),
        (["train.py", "--"], "there is no program to run"),
        (["-", "--", "train.py"], "standard input cannot be verified"),
        (["--", "nothing-like-it"], "there is no command `nothing-like-it`"),
        (["--root", "elsewhere", "--", "nothing-like-it"], "there is no command `nothing-like-it`"),
        (["--", "python", "nothing.py"], "there is no file nothing.py"),
        (["--repeat", "1", "--", "train.py"], "`1` is not a number from 2"),
        (["--warmup", "0", "--", "train.py"], "`0` is not a number from 1"),
        (["--time-budget", "soon", "--", "train.py"], "`soon` is not a number of seconds"),
        (["--time-budget", "-1", "--", "train.py"], "`-1` is not a number of seconds"),
        (["--select", "TPF999", "--", "train.py"], "TPF999"),
        (["--root", "elsewhere", "--", "train.py"], "elsewhere cannot be copied"),
    ],
)
def test_faults_in_the_usage(perflint: Command, arguments: list[str], message: str) -> None:
    perflint.write("train.py", "import torch\n")
    ran = perflint("verify", *arguments)
    assert (ran.code, ran.out) == (2, "") and message in ran.err


def test_help(perflint: Command) -> None:
    said = " ".join(perflint("verify", "--help").out.split())
    assert (
        "usage: perflint verify [options] [PATH ...] -- COMMAND" in said and "Exit codes: 0 all fixes are kept" in said
    )
    assert "perflint fix --verify -- COMMAND" in " ".join(perflint("fix", "--help").out.split())
