"""The public programs that the verdicts are counted on: each can be prepared, and a run of one is judged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.tracer.public import data, run
from tests.tracer.device import WITHOUT_COMPILER

PROGRAM = (
    WITHOUT_COMPILER
    + """
import numbers_of.tables
import tensorboard_logger

loss = torch.zeros(3, device="cuda")
model = torch.nn.Linear(3, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for step in range(3):
    loss = model(loss.detach()).sum()
    loss.backward()
    optimizer.step()
    total += loss.item()
    loss = torch.zeros(3, device="cuda")
tensorboard_logger.Logger("logs").log_value("total", total, 3)
"""
)


def _repository(place: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git = ["git", "-C", str(place), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *arguments], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


def test_each_program_says_how_it_runs_or_why_it_does_not() -> None:
    programs = run.programs()
    assert len(programs) == 20
    for entry in programs.values():
        assert len(entry["commit"]) == 40
        if "reason" not in entry:
            assert ("script" in entry) != ("driver" in entry)
            assert "driver" not in entry or (run.HERE / "drivers" / entry["driver"]).exists()
            assert "data" not in entry or callable(getattr(data, entry["data"]))


def test_a_program_is_checked_out_once_and_judged(tmp_path: Path) -> None:
    files = {"train.py": PROGRAM, "numbers_of/tables.py": "ROWS = 3\n", "big.bin": "x", "also.txt": "y", "setup.py": ""}
    commit = _repository(tmp_path / "someone" / "thing", files)
    entry: dict[str, Any] = {"repository": "someone/thing", "commit": commit, "script": "train.py"}
    entry |= {"also": ["also.txt"], "data": "tokens"}
    pattern = str(tmp_path / "{owner}" / "{name}" / ".git")
    made = run.prepared("thing", entry, tmp_path / "checkouts", pattern)
    assert made.files == ("numbers_of/tables.py", "train.py")
    assert (made.folder / "also.txt").exists() and not (made.folder / "big.bin").exists()
    assert (made.folder / "data" / "tiny" / "train.bin").stat().st_size == 8192
    assert run.prepared("thing", entry, tmp_path / "checkouts", "/nowhere/{owner}/{name}") == made
    outcome = made.outcome(gpu=False, limit=300)
    assert not outcome.failure
    rulings = {(each.program, each.place.partition(":")[0], each.code): each.ruling for each in outcome.found}
    assert rulings["thing", "train.py", "TPF101"] == "confirmed"
