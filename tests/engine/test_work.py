"""The work that a check takes, in counts that the load of the machine does not change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perflint.engine.active import active_rules
from perflint.engine.files import Means, check_files
from perflint.engine.workers import Worker
from perflint.semantics.interpreter.analysis import Analysis
from perflint.source.files import below
from tests.engine.work import AUDIT, Work, worked


@pytest.fixture
def work(sample: Path) -> Work:
    """The work of a check of all files of the sample."""
    return worked(below(str(sample), AUDIT))


def test_a_file_runs_once_for_its_summary_and_its_check(sample: Path, work: Work) -> None:
    paths = [run.module.path for run in work.analyses if "tests" not in run.module.path.relative_to(sample).parts]
    assert len(paths) == len(set(paths)) >= 8


def test_steps_for_each_node(work: Work) -> None:
    assert work.steps_for_each_node <= 3.2


def test_runs_for_each_function_with_its_arguments(work: Work) -> None:
    assert len(work.runs) >= 50
    assert work.runs_for_each_key <= 2.0


def test_a_run_is_gone_on_with_though_the_project_keeps_no_trees(
    sample: Path, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perflint.semantics.project.TEXT_IN_MEMORY", 1)
    assert len(worked(below(str(sample), AUDIT)).analyses) == len(work.analyses)


def test_two_processes_make_no_summary_by_a_run_that_the_other_has_made(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    here = os.getpid()
    run_alone = Analysis.run_alone

    def logged(analysis: Analysis, part: range | None = None) -> None:
        if os.getpid() != here:
            with log.open("a") as file:
                print(analysis.module.path, file=file)
        run_alone(analysis, part)

    monkeypatch.setattr(Analysis, "run_alone", logged)
    monkeypatch.setattr("perflint.engine.files._WORTH_A_WORKER", 0)
    # A process that has nothing left to do may check files of the other, so this process makes all checks.
    monkeypatch.setattr(Worker, "check", lambda worker, files: [])
    files = list(below(str(sample), AUDIT))
    assert len(list(check_files(files, active_rules(AUDIT), AUDIT, means=Means(jobs=2)))) == len(files)
    paths = log.read_text().splitlines()
    assert len(paths) == len(set(paths)) >= 8
