"""The recorder, over programs whose synchronisations are torch's warning and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.tracer.device import DEVICE

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

TOOL = Path(__file__).parents[2] / "tools" / "record_truth.py"


def record(folder: Path, *programs: str, arguments: tuple[str, ...] = ()) -> tuple[dict[str, Any], Any]:
    """Run programs under the recorder; the recording, and the finished process."""
    (folder / "libs").mkdir(exist_ok=True)
    (folder / "libs" / "device.py").write_text(DEVICE)
    (folder / "src").mkdir(exist_ok=True)
    names = [f"src/p{number}.py" for number in range(len(programs))]
    for name, text in zip(names, programs, strict=True):
        (folder / name).write_text("import sys\nsys.path.append('libs')\nimport device\n" + text)
    output = folder / "truth.json"
    command = [sys.executable, str(TOOL), *names, "--output", str(output), "--", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    return json.loads(output.read_text()), done


def places(recording: dict[str, Any]) -> list[tuple[str, int, int, int, str, int]]:
    return [
        (row["file"], row["line"], row["col"], row["end_col"], row["func"], row["count"]) for row in recording["syncs"]
    ]


def test_keeps_the_innermost_frame_of_the_program(tmp_path: Path) -> None:
    recording, _ = record(
        tmp_path,
        "class A:\n    def f(self, n):\n        return [device.sync() for _ in range(n)], 1\nA().f(3)\n",
    )
    ((file, line, col, end_col, func, count),) = places(recording)
    assert (file, line, col, end_col, count) == ("p0.py", 6, 16, 29, 3)
    assert func.startswith("A.f")
    assert recording["syncs"][0]["inner"].endswith("libs/device.py:5")
    assert recording["syncs"][0]["phases"] == {"init": 3}


def test_counts_lines(tmp_path: Path) -> None:
    recording, _ = record(tmp_path, "for i in range(7):\n    x = i\nif x < 0:\n    x = 1\n")
    assert recording["lines"]["init"]["p0.py"] == [1, 2, 3, 4, 5, 6]
    assert recording["counts"]["p0.py"]["5"] == 7
    assert list(recording["counts"]) == ["p0.py"]


def test_a_program_cannot_silence_it(tmp_path: Path) -> None:
    silent = "import warnings\nwarnings.filterwarnings('ignore')\ndevice.sync()\nwarnings.simplefilter('ignore')\n"
    silent += "device.sync()\nwith warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    device.sync()\n"
    recording, done = record(tmp_path, silent + "warnings.resetwarnings()\ndevice.sync()\n")
    assert [row[1] for row in places(recording)] == [6, 8, 11, 13]
    assert "synchronizing" not in done.stderr


def test_shows_other_warnings_as_ever(tmp_path: Path) -> None:
    recording, done = record(tmp_path, "import warnings\nwarnings.warn('beware')\n")
    assert "UserWarning: beware" in done.stderr
    assert not recording["syncs"]


def test_arguments_output_and_status_are_the_programs(tmp_path: Path) -> None:
    program = (
        "print(sys.argv[1:], __name__, __file__)\nimport __main__\nprint(__main__.device is device)\nsys.exit(3)\n"
    )
    recording, done = record(tmp_path, program, arguments=("--root", "a b"))
    assert done.stdout == "['--root', 'a b'] __main__ src/p0.py\nTrue\n"
    assert done.returncode == 3
    assert recording["programs"]["p0.py"]["status"] == 3
    assert recording["programs"]["p0.py"]["arguments"] == ["--root", "a b"]


def test_an_exception_ends_the_program_not_the_recording(tmp_path: Path) -> None:
    recording, done = record(tmp_path, "device.sync()\nraise ValueError(device.sync())\n")
    assert done.returncode == 1
    assert "ValueError" in done.stderr
    assert "record_truth" not in done.stderr
    assert [row.get("excluded") for row in recording["syncs"]] == [None, "raise"]


def test_threads(tmp_path: Path) -> None:
    program = "import threading, time\ndef work():\n    time.sleep(0.2)\n    device.sync()\n"
    recording, _ = record(tmp_path, program + "threading.Thread(target=work).start()\n")
    assert [row[4] for row in places(recording)] == ["work"]
    assert 7 in recording["lines"]["init"]["p0.py"]


def test_a_module_on_its_way_to_the_device_asks_for_no_finding(tmp_path: Path) -> None:
    recording, _ = record(tmp_path, "device.Module().to()\n")
    assert recording["syncs"][0]["excluded"] == "module-move"


def test_several_programs_become_one_recording(tmp_path: Path) -> None:
    shared = "from shared import f\nf()\n"
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "shared.py").write_text("import device\ndef f():\n    device.sync()\n")
    recording, done = record(tmp_path, shared, shared + "device.sync()\n", "sys.exit('no')\n")
    assert done.returncode == 1
    assert places(recording) == [("p1.py", 6, 0, 13, "<module>", 1), ("shared.py", 3, 4, 17, "f", 2)]
    assert recording["counts"]["shared.py"]["3"] == 2
    assert [facts["status"] for facts in recording["programs"].values()] == [0, 0, 1]


def test_a_copy_within_the_host_is_not_pageable(tmp_path: Path) -> None:
    program = "import torch\nx = torch.ones(2)\nx.to('cpu', non_blocking=True)\nx.copy_(x, non_blocking=True)\n"
    recording, _ = record(tmp_path, program)
    assert recording["pageable"] == []
