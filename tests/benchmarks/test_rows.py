"""The rows that the benchmarks of rules print, and how they come into the data file."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "rules"))

from merge import WORTH, main, tables

ROW = """\
[runs.new]
device = "NVIDIA H200"
torch = "2.12.0"
source = "benchmarks/rules/syncs.py"

[rows.decode-any]
run = "new"
ratio = 1.5

# some-row: failed

[grids.small]
rows = [1, 2]
ratios = [
    1.0, 2.0,
]
"""


def test_tables_of_the_data_file_are_all_found() -> None:
    text = WORTH.read_text(encoding="utf-8")
    known = tomllib.loads(text)
    assert set(tables(text)) == {f"{kind}.{name}" for kind, named in known.items() for name in named}
    assert tomllib.loads("\n".join(tables(text).values())) == known


def test_rows_are_replaced_and_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worth, new = tmp_path / "worth.toml", tmp_path / "new.toml"
    worth.write_bytes(WORTH.read_bytes())
    new.write_text(ROW, encoding="utf-8")
    monkeypatch.setattr("merge.WORTH", worth)
    monkeypatch.setattr("sys.argv", ["merge.py", str(new)])
    main()
    before, after = (tomllib.loads(path.read_text(encoding="utf-8")) for path in (WORTH, worth))
    assert after["rows"].pop("decode-any") == {"run": "new", "ratio": 1.5} and before["rows"].pop("decode-any")
    assert after["grids"].pop("small")["ratios"] == [1.0, 2.0] and after["runs"].pop("new")["torch"] == "2.12.0"
    assert after == before
    assert worth.read_text(encoding="utf-8").startswith("# What patterns cost on a GPU.")


def test_a_measured_row_has_the_fields_of_a_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    import timing

    monkeypatch.setattr(timing, "OPTIONS", timing.Options("cpu", quick=True))
    pair = timing.Pair(
        "sums", "TPF101 TPF102", "a sum", "float32", "3", lambda: (lambda: sum(range(90000)), lambda: sum(range(900)))
    )
    row = tomllib.loads(timing.measure(pair, "new"))["rows"]["sums"]
    known = tomllib.loads(tables(WORTH.read_text(encoding="utf-8"))["rows.decode-any"])["rows"]["decode-any"]
    assert list(row) == list(known)
    assert row["rules"] == ["TPF101", "TPF102"] and row["low"] <= row["ratio"] <= row["high"]
    assert row["ratio"] > 2 and row["bad_ms"] > row["good_ms"]
