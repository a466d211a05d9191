"""The changes by hand of the benchmark with public programs."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from benchmarks.programs import by_hand, run


def test_each_change_by_hand_is_of_a_program_and_is_short() -> None:
    programs = tomllib.loads((run.HERE / "programs.toml").read_text())
    for path in by_hand.FOLDER.glob("*.toml"):
        known = by_hand.hand(path.stem)
        assert path.stem in programs and known["edit"]
        given = programs[path.stem]["arguments"].split() if "arguments" in known else []
        assert set(known.get("arguments", ())) <= set(given)
        for edit in known["edit"]:
            assert set(edit) == {"file", "old", "new"}
            # Fragments only show the place: no code of others is kept.
            assert len(edit["old"].strip().splitlines()) <= 5, edit["old"]


def test_fragments_are_replaced_where_they_are_there_once(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 1\n")
    by_hand.edited(tmp_path, {"edit": [{"file": "a.py", "old": "x = 1", "new": "x = 2"}]})
    assert (tmp_path / "a.py").read_text() == "x = 2\ny = 1\n"
    for old in ("= 1\nz", "\n"):
        with pytest.raises(ValueError, match=r"a\.py has [02] times"):
            by_hand.edited(tmp_path, {"edit": [{"file": "a.py", "old": old, "new": ""}]})
    assert by_hand.hand("unknown") == {}


def test_switches_of_the_command_line_are_changed_only_by_hand(tmp_path: Path) -> None:
    entry = {"script": "train.py", "arguments": "--compile=False --size=1"}
    program = run.Measured("nanogpt", entry, tmp_path, small=False)
    assert program.command(run.ORIGINAL) == ("train.py", ["--compile=False", "--size=1"])
    assert program.command(run.HAND) == ("train.py", ["--compile=True", "--size=1"])
