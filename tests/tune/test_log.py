"""The runs of a search outlive it, also if it is killed while it writes."""

from __future__ import annotations

from pathlib import Path

from perflint.tune.log import Log
from perflint.verify.execution import Run


def run(seconds: float) -> Run:
    return Run(0, seconds, "out", "", None)


def test_a_search_that_was_killed_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "tune.runs.jsonl"
    log = Log(path)
    for at in range(2):
        assert log.run("key", lambda at=at: run(at)) == (run(at), False)
    whole = path.read_bytes()
    for length in range(len(whole) // 2 + 1, len(whole)):
        path.write_bytes(whole[:length])
        again = Log(path)
        assert again.run("key", lambda: run(9)) == (run(0), True)
        assert again.run("key", lambda: run(1)) == (run(1), False)
        assert path.read_bytes() == whole
