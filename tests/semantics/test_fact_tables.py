"""Tables of facts are parsed once, and again after a change."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest

from perflint.semantics.facts.tables import table


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    found = tmp_path / "facts.toml"
    found.write_text('[one]\nnames = ["a", "b"]\ncount = 2\n')
    return found


def test_a_table_is_parsed_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    loads = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda text: parsed.append(text) or loads(text))
    assert [table(file), table(file)] == [{"one": {"names": ["a", "b"], "count": 2}}] * 2
    assert len(parsed) == 1
    file.write_text("[two]\n")
    assert table(file) == {"two": {}} and len(parsed) == 2


@pytest.mark.parametrize("damage", [b"", b"no marshal", b"i\x01\x00\x00\x00"])
def test_a_damaged_form_is_written_anew(damage: bytes, file: Path) -> None:
    table(file)
    (kept,) = (file.parent / "__pycache__").iterdir()
    good = kept.read_bytes()
    kept.write_bytes(damage)
    assert table(file)["one"]["count"] == 2
    assert kept.read_bytes() == good


def test_nothing_is_written_if_python_writes_no_bytecode(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert table(file)["one"]["count"] == 2
    assert os.listdir(file.parent) == ["facts.toml"]
