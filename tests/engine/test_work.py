"""The work that a check takes, in counts that the load of the machine does not change."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.files import check_files
from perflint.semantics.interpreter.analysis import Analysis
from perflint.source.files import below

AUDIT = Settings(profile=Profile.AUDIT)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Analysis]:
    """The runs over files that begin, in order."""
    begun: list[Analysis] = []
    run_alone = Analysis.run_alone

    def noted(analysis: Analysis, part: range | None = None) -> None:
        begun.append(analysis)
        run_alone(analysis, part)

    monkeypatch.setattr(Analysis, "run_alone", noted)
    return begun


def check(folder: Path) -> None:
    files = list(below(str(folder), AUDIT))
    assert not any(report.problems for _, report in check_files(files, active_rules(AUDIT), AUDIT))


def test_a_file_runs_once_for_its_summary_and_its_check(sample: Path, runs: list[Analysis]) -> None:
    check(sample)
    paths = [run.module.path for run in runs if "tests" not in run.module.path.relative_to(sample).parts]
    assert len(paths) == len(set(paths)) >= 8


def test_steps_for_each_node(sample: Path, runs: list[Analysis]) -> None:
    check(sample)
    nodes = sum({run.module.path: run.module.structure.size for run in runs}.values())
    steps = sum(run.recorder.steps for run in runs)
    assert steps <= 3.2 * nodes, f"{steps / nodes:.2f}"
