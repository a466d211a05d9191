"""The recorder, over programs whose synchronisations are torch's warning and nothing else."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.tracer import warm
from tests.tracer.device import DEVICE, Done, python

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

TOOL = Path(__file__).parents[2] / "tools" / "record_truth.py"


FRAMES = (
    "class A:\n    def f(self, n):\n        return [device.sync() for _ in range(n)], 1\nA().f(3)\n"
    "for i in range(7):\n    x = i\nif x < 0:\n    x = 1\n"
)
SILENT = (
    "import warnings\nwarnings.filterwarnings('ignore')\ndevice.sync()\nwarnings.simplefilter('ignore')\n"
    "device.sync()\nwith warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    device.sync()\n"
    "warnings.resetwarnings()\ndevice.sync()\nwarnings.warn('beware')\n"
)
OUTPUT = "print(sys.argv[1:], __name__, __file__)\nimport __main__\nprint(__main__.device is device)\nsys.exit(3)\n"
ERROR = "device.sync()\nraise ValueError(device.sync())\n"
# Copies within the host, a module on its way to the device, and a thread that outlives the program.
OTHER = (
    "import threading, time, torch\nx = torch.ones(2)\nx.to('cpu', non_blocking=True)\nx.copy_(x, non_blocking=True)\n"
    "device.Module().to()\n"
    "def work():\n    time.sleep(0.2)\n    device.sync()\nthreading.Thread(target=work).start()\n"
)
PROGRAMS = {
    "frames": FRAMES,
    "silent": SILENT,
    "output": OUTPUT,
    "error": ERROR,
    "other": OTHER,
    "one": "from shared import f\nf()\n",
    "two": "sys.path.insert(0, 'src/deep/..'); from shared import f\nf()\ndevice.sync()\n",
}
SEVERAL = ("output", "one", "two")
"""The programs of one recording, each in a process of its own, which imports torch."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs in `src`."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "libs").mkdir()
    (folder / "libs" / "device.py").write_text(DEVICE)
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "src" / "shared.py").write_text("import device\ndef f():\n    device.sync()\n")
    for name, text in PROGRAMS.items():
        (folder / "src" / f"{name}.py").write_text("import sys\nsys.path.append('libs')\nimport device\n" + text)
    return folder


@cache
def recorded(folder: Path, *names: str) -> tuple[dict[str, Any], Done]:
    """The recording of some programs, and the finished process; that of one runs where torch is imported already."""
    output = folder / f"{names[0]}.json"
    programs = [f"src/{name}.py" for name in names]
    run = python if len(names) > 1 else warm.script
    done = run(folder, str(TOOL), *programs, "--output", str(output), "--", "--root", "a b")
    return json.loads(output.read_text()), done


def syncs(recording: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [row for row in recording["syncs"] if row["file"] == f"{name}.py"]


def test_keeps_the_innermost_frame_of_the_program(folder: Path) -> None:
    (row,) = syncs(recorded(folder, "frames")[0], "frames")
    assert (row["line"], row["col"], row["end_col"], row["count"]) == (6, 16, 29, 3)
    assert row["func"].startswith("A.f")
    assert row["inner"].endswith("libs/device.py:5")
    assert row["phases"] == {"init": 3}


def test_counts_lines(folder: Path) -> None:
    recording, _ = recorded(folder, "frames")
    assert recording["lines"]["init"]["frames.py"] == [*range(1, 11)]
    assert recording["counts"]["frames.py"]["9"] == 7


def test_a_program_cannot_silence_it(folder: Path) -> None:
    recording, done = recorded(folder, "silent")
    assert [row["line"] for row in syncs(recording, "silent")] == [6, 8, 11, 13]
    assert "synchronizing" not in done.err
    # Other warnings are shown as ever.
    assert "UserWarning: beware" in done.err


def test_arguments_output_and_status_are_the_programs(folder: Path) -> None:
    recording, done = recorded(folder, *SEVERAL)
    assert done.out == "['--root', 'a b'] __main__ src/output.py\nTrue\n"
    assert recording["programs"]["output.py"]["status"] == 3
    assert recording["programs"]["output.py"]["arguments"] == ["--root", "a b"]


def test_an_exception_ends_the_program_not_the_recording(folder: Path) -> None:
    recording, done = recorded(folder, "error")
    assert recording["programs"]["error.py"]["status"] == 1
    assert "ValueError" in done.err
    assert "record_truth" not in done.err
    assert [row.get("excluded") for row in syncs(recording, "error")] == [None, "raise"]


def test_threads(folder: Path) -> None:
    recording, _ = recorded(folder, "other")
    assert [row["line"] for row in syncs(recording, "other") if row["func"] == "work"] == [11]
    assert 10 in recording["lines"]["init"]["other.py"]


def test_a_module_on_its_way_to_the_device_asks_for_no_finding(folder: Path) -> None:
    recording, _ = recorded(folder, "other")
    (row,) = [row for row in syncs(recording, "other") if row["func"] != "work"]
    assert row["excluded"] == "module-move"


def test_several_programs_become_one_recording(folder: Path) -> None:
    recording, done = recorded(folder, *SEVERAL)
    rows = [
        (row["file"], row["line"], row["col"], row["end_col"], row["func"], row["count"])
        for name in ("one", "two", "shared")
        for row in syncs(recording, name)
    ]
    assert rows == [("two.py", 6, 0, 13, "<module>", 1), ("shared.py", 3, 4, 17, "f", 2)]
    assert set(recording["counts"]) == {"shared.py", *(f"{name}.py" for name in SEVERAL)}
    assert recording["counts"]["shared.py"]["3"] == 2
    status = {name: facts["status"] for name, facts in recording["programs"].items()}
    assert (status["one.py"], status["two.py"]) == (0, 0)
    # That of the first program that failed.
    assert done.code == status["output.py"]


def test_a_copy_within_the_host_is_not_pageable(folder: Path) -> None:
    assert recorded(folder, "other")[0]["pageable"] == []


def test_a_driver_of_a_simulated_program(tmp_path: Path) -> None:
    root = tmp_path / "programs" / "net"
    root.mkdir(parents=True)
    (root / "net.py").write_text("import torch\ndef read():\n    return torch.ones(2, device='cuda').sum().item()\n")
    driver = tmp_path / "driver.py"
    driver.write_text(f"import sys\nsys.path.insert(0, {str(root)!r})\nimport net\nprint(net.read() + net.read())\n")
    output = tmp_path / "truth.json"
    options = ["--root", str(root.parent), "--output", str(output), "--simulate", "--name", "net"]
    done = warm.script(tmp_path, str(TOOL), str(driver), *options)
    assert done.out == "4.0\n", done.err
    recorded = json.loads(output.read_text())
    assert recorded["gpu"] == "simulated"
    assert list(recorded["programs"]) == ["net"]
    assert list(recorded["counts"]) == ["net/net.py"]
    (row,) = recorded["syncs"]
    assert (row["file"], row["line"], row["count"], row["phases"]) == ("net/net.py", 3, 2, {"cuda": 2})
