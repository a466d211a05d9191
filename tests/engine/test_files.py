"""Many files through the engine."""

from __future__ import annotations

import gc
import io
import sys
import weakref
from pathlib import Path

import pytest

from perflint.config.settings import Settings
from perflint.engine.files import check_files
from perflint.rules.registry import RuleSet
from perflint.semantics.callers.kept import Run, Summaries
from perflint.source.text import Source
from tests.engine.toys import Zeros

RULES = RuleSet([Zeros()])
BAD = "import torch\ntorch.zeros(3)\n"


def test_one_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    contents = {
        "a.py": BAD.encode(),
        "b.py": b"if:\n",
        "c.py": b"'\xff'\n",
        "d.py": b"\xef\xbb\xbf" + BAD.replace("\n", "\r\n").encode(),
        "f.py": b"",
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    files = [str(tmp_path / name) for name in (*contents, "missing.py")]
    results = [(source.path, report) for source, report in check_files(files, RULES, Settings())]
    assert [path for path, _ in results] == files
    assert [len(report.findings) for _, report in results] == [1, 0, 0, 1, 0, 0]
    assert [len(report.problems) for _, report in results] == [0, 1, 1, 0, 0, 1]
    assert [report.files for _, report in results] == [1, 0, 0, 1, 1, 0]


@pytest.mark.parametrize(("filename", "path"), [(None, "-"), ("src/x.py", "src/x.py")])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, filename: str | None, path: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    ((source, report),) = check_files(["-"], RULES, Settings(), filename)
    assert source.text == BAD
    assert [finding.path for finding in report.findings] == [path]


def test_standard_input_that_cannot_be_read_goes_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    ((_, report),) = check_files(["-"], RULES, Settings(), "x.py")
    assert [problem.path for problem in report.problems] == ["x.py"]


def test_sources_are_let_go(tmp_path: Path) -> None:
    assert not gc.isenabled()
    files = []
    for index in range(5):
        path = tmp_path / f"m{index}.py"
        path.write_text(BAD)
        files.append(str(path))
    alive: list[weakref.ref[Source]] = []
    for source, _ in check_files(files, RULES, Settings()):
        alive.append(weakref.ref(source))
        del source
        # The one in hand, and at most the one before it.
        assert sum(ref() is not None for ref in alive) <= 2


def test_the_outcome_does_not_depend_on_what_was_checked_before(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text(f"from {'b' if name == 'a' else 'a'} import x\n{BAD}x = 3\n")
    files = [str(tmp_path / "a.py"), str(tmp_path / "b.py")]
    forwards = {source.path: report.findings for source, report in check_files(files, RULES, Settings())}
    backwards = {source.path: report.findings for source, report in check_files(files[::-1], RULES, Settings())}
    assert forwards == backwards


@pytest.mark.parametrize(("memory", "most"), [(1, range(2)), (10**6, range(3, 7))])
def test_runs_are_kept_for_as_many_files_as_there_is_memory_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: int, most: range
) -> None:
    """Each file of a circle calls a function of the next one."""
    (tmp_path / "pyproject.toml").touch()
    files = [str(tmp_path / f"m{number}.py") for number in range(6)]
    for number, file in enumerate(files):
        after = (number + 1) % 6
        Path(file).write_text(
            f"import torch\nfrom m{after} import f{after}\ndef f{number}(x):\n    return f{after}(torch.ones(x))\n"
        )
    monkeypatch.setattr("perflint.engine.summaries.TEXT_IN_MEMORY", memory)
    kept: list[int] = []
    keep_run = Summaries.keep_run

    def keep(known: Summaries, run: Run) -> None:
        keep_run(known, run)
        kept.append(len(known._runs))

    monkeypatch.setattr(Summaries, "keep_run", keep)
    assert len(list(check_files(files, RULES, Settings()))) == 6
    assert max(kept) in most
