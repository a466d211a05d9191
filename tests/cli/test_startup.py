"""What a start costs: processor time, so that a busy machine does not matter, and what it imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import ROOT

resource = pytest.importorskip("resource", reason="needs the processor time of child processes")

CLEAN = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x):
        return torch.relu(self.layer(x))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    (folder / "clean.py").write_text(CLEAN)
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the interpreter with compiled modules kept, as they are where perflint is installed."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )


def seconds(folder: Path, *arguments: str) -> float:
    """The least processor time of some runs, after one that compiles what is imported."""
    return least_of(folder, arguments)[0]


def least_of(folder: Path, *commands: tuple[str, ...]) -> list[float]:
    """The same for several commands, by turns: what else the machine does slows all of them."""
    for arguments in commands:
        run(folder, *arguments)
    taken: list[list[float]] = [[] for _ in commands]
    for _ in range(3):
        for arguments, times in zip(commands, taken, strict=True):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            run(folder, *arguments)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return list(map(min, taken))


def test_version(folder: Path) -> None:
    assert seconds(folder, "-m", "perflint", "--version") - seconds(folder, "-c", "pass") < 0.06


def test_a_clean_file_is_checked_faster_than_libcst_is_imported(folder: Path) -> None:
    assert run(folder, "-m", "perflint", "check", "clean.py").stdout.startswith("No findings in 1 file.\n")
    commands = ("-m", "perflint", "check", "clean.py"), ("-c", "import libcst")
    # Beside other work the processor time of one process may double, even as the least of some runs.
    rounds = (least_of(folder, *commands) for _ in range(4))
    assert any(checking < importing for checking, importing in rounds)


VERBS = [
    (
        ["check", "clean.py"],
        {"libcst", "torch", "numpy", "dataclasses", "inspect", "difflib", "json", "unittest", "asyncio"},
    ),
    (["check", "clean.py", "--profile", "audit"], {"libcst", "torch", "numpy"}),
    (["check", "clean.py", "--output-format", "json"], {"libcst", "torch", "numpy"}),
    (["fix", "clean.py"], {"libcst", "torch", "numpy"}),
    (["explain", "clean.py:11"], {"libcst", "torch", "numpy"}),
    (["rules"], {"libcst", "torch", "numpy"}),
    (["rule", "TPF902"], {"libcst", "torch", "numpy"}),
    (["--version"], {"libcst", "argparse", "dataclasses", "re", "perflint.findings", "perflint.config"}),
    (["--help"], {"libcst", "dataclasses", "perflint.findings", "perflint.config"}),
]


@pytest.mark.parametrize(
    ("arguments", "unwanted"), VERBS, ids=lambda value: " ".join(sorted(value) if isinstance(value, set) else value)
)
def test_what_a_verb_does_not_import(folder: Path, arguments: list[str], unwanted: set[str]) -> None:
    script = (
        "import sys; from perflint.cli.main import main; before = {*sys.modules}; code = main(sys.argv[1:]); "
        "print(code, *sys.modules, file=sys.stderr)"
    )
    code, *modules = run(folder, "-c", script, *arguments).stderr.splitlines()[-1].split()
    assert code == "0"
    assert "perflint.cli.main" in modules
    assert not unwanted & set(modules)


def test_a_clean_file_imports_few_modules(folder: Path) -> None:
    script = "import sys; from perflint.cli.main import main; main(['check', 'clean.py']); print(*sys.modules)"
    modules = run(folder, "-c", script).stdout.splitlines()[-1].split()
    assert 200 < sum(name.startswith("perflint") for name in modules) <= 300


def test_the_end_looks_for_no_circles(folder: Path) -> None:
    # Functions that are registered first run last.
    script = (
        "import atexit, gc, sys\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 10_000, gc.get_count()[0] < 100))\n"
        "from perflint.cli.main import main\n"
        "sys.exit(main(['check', '--isolated', '--no-cache', 'clean.py']))\n"
    )
    assert run(folder, "-c", script).stdout.endswith("True True\n")
