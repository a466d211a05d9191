"""Processes that check files: batches, files that vanish, the environment."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from perflint.config.settings import Settings
from perflint.engine import summaries, workers
from perflint.engine.projects import Projects
from perflint.engine.summaries import summary_before_checks
from perflint.engine.workers import Worker
from perflint.findings import Report
from perflint.semantics.model import LAST


class Process:
    """A process that answers at once."""

    def __init__(self, begun: list[tuple[int, str]]) -> None:
        self.connection, self._answers = multiprocessing.Pipe()
        self.begun: list[tuple[int, str]] = []
        self._begun_by_all = begun

    def work(self, stage: int, files: list[str]) -> None:
        for each in self.begun, self._begun_by_all:
            each += [(stage, file) for file in files]
        self._answers.send([(file, Report()) for file in files])


STAGES = range(LAST + 2)


def test_one_batch_for_two_processes() -> None:
    processes = [Process([]), Process([])]
    found = workers._shared(processes, [["a.py"]], {"a.py": 1})  # type: ignore[arg-type]
    assert [file for file, _ in found] == ["a.py" for _ in STAGES]
    assert [process.begun for process in processes] == [[(stage, "a.py") for stage in STAGES], []]


@pytest.mark.parametrize("group", [5, 2])
def test_a_round_begins_when_the_one_before_is_over(group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With memory for as many files as a group has."""
    monkeypatch.setattr(summaries, "TEXT_IN_MEMORY", group / 2)
    begun: list[tuple[int, str]] = []
    processes = [Process(begun), Process(begun)]
    files = ["0.py", "1.py", "2.py", "3.py", "4.py"]
    list(workers._shared(processes, [[file] for file in files], dict.fromkeys(files, 1)))  # type: ignore[arg-type]
    assert sorted(begun) == [(stage, file) for stage in STAGES for file in files]
    for at, (stage, file) in enumerate(begun):
        together = files[: int(file[0]) // group * group + group]
        assert {(before, other) for before in range(stage) for other in together} <= set(begun[:at])
    for process in processes:
        rounds = [{file for stage, file in process.begun if stage == round} for round in range(LAST + 1)]
        assert rounds[0] == rounds[1] == rounds[2]


@pytest.mark.parametrize("before", [None, "yes"])
def test_the_environment_is_as_it_was(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    if before is not None:
        monkeypatch.setenv("PYTHONSAFEPATH", before)
    with workers._safe_path():
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert os.environ.get("PYTHONSAFEPATH") == before


def test_a_worker_without_a_cache_and_without_a_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "cache").touch()
    file = tmp_path / "a.py"
    file.write_text("import torch\n")
    settings = Settings()
    worker = Worker(settings, tmp_path / "cache" / "below", {}, Projects(settings))
    before = signal.getsignal(signal.SIGINT)
    try:
        worker.start()
        assert worker.summarize([str(file)], 0) == []
        (found,) = worker.check([str(file)])
        assert not found[1].problems and found[1].files == 1
        file.unlink()
        (found,) = worker.check([str(file)])
        assert [problem.message for problem in found[1].problems] == ["no such file or folder"]
    finally:
        signal.signal(signal.SIGINT, before)
        gc.disable()


def test_a_summary_that_crashes_is_made_by_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise ValueError("no summary")

    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "a.py").write_text("def f(x):\n    return x\n")
    (tmp_path / "b.py").write_text("from a import f\nf(1)\n")
    project = Projects(Settings()).of(tmp_path / "a.py")
    assert summary_before_checks(project, str(tmp_path / "b.py"), LAST) is not None
    monkeypatch.setattr(summaries, "summary_of", crash)
    assert summary_before_checks(project, str(tmp_path / "b.py"), LAST) is None


def test_a_worker_travels_without_its_projects(tmp_path: Path) -> None:
    worker = Worker(Settings(), tmp_path, {}, Projects(Settings()))
    there = pickle.loads(pickle.dumps(worker))
    assert there._projects is None and there._cache == tmp_path


def test_new_processes_are_not_started_where_they_would_import_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = SimpleNamespace(ignore_environment=True, safe_path=False)
    monkeypatch.setattr(workers, "sys", SimpleNamespace(platform="win32", flags=flags))
    worker = Worker(Settings(), tmp_path, {}, Projects(Settings()))
    assert list(workers.checked_by_workers(worker, {str(tmp_path / "a.py"): 1}, 2)) == []
