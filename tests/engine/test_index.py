"""What is kept of the rules, so that a run need not import them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import perflint
import perflint.rules
from perflint.rules import index
from perflint.rules.base import Rule
from perflint.rules.index import Unloaded
from perflint.rules.registry import all_rules

SHOW = """
import sys
from perflint.rules.registry import known_rules
rules = known_rules()
loaded = [name for name in sys.modules if name.startswith("perflint.rules.sync.") and not "._" in name]
print(len(rules), len(loaded), ",".join(rule.code for rule in rules))
"""


KEPT = {name for name, kind in Rule.__annotations__.items() if kind.startswith("ClassVar")} - {"measured", "costs"}
"""What a rule says about itself. `measured_cost` says the rest."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like that of the rules, with nothing kept."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    copy = tmp_path / "rules"
    shutil.copytree(Path(perflint.rules.__path__[0]), copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def test_what_is_kept_is_what_rules_are(folder: Path) -> None:
    assert index.of(folder) is None
    index.keep(folder, all_rules(), index.stamp_of(folder))
    found = index.of(folder)
    assert found is not None
    for known, rule in zip(found, all_rules(), strict=True):
        assert isinstance(known, Unloaded)
        for name in KEPT:
            assert getattr(known, name) == getattr(rule, name), (rule.code, name)
        assert type(known.loaded) is type(rule)


def test_a_rule_that_is_not_imported_does_all_that_it_would_do() -> None:
    methods = {name for name, member in vars(Rule).items() if callable(member)}
    own = {name for rule in all_rules() for name in vars(type(rule))} & methods
    assert own >= {"check", "need"}
    assert own - {"__init__"} <= vars(Unloaded).keys()


@pytest.mark.parametrize("change", ["edit", "add", "remove", "damage", "other"])
def test_what_is_kept_of_other_files_is_not_used(folder: Path, change: str) -> None:
    index.keep(folder, all_rules(), index.stamp_of(folder))
    rule = folder / "sync" / "list_index.py"
    kept = next((folder / "__pycache__").glob("index.*.marshal"))
    if change == "edit":
        os.utime(rule, ns=(0, 0))
    elif change == "add":
        (folder / "sync" / "newer.py").write_text("")
    elif change == "remove":
        rule.unlink()
    elif change == "damage":
        kept.write_bytes(kept.read_bytes()[:-7])
    else:
        kept.write_bytes(b"")
    assert index.of(folder) is None


def test_a_folder_that_cannot_be_written(folder: Path) -> None:
    (folder / "__pycache__").write_text("in the way")
    index.keep(folder, all_rules(), index.stamp_of(folder))
    assert index.of(folder) is None


def test_nothing_is_kept_where_python_keeps_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    index.keep(folder, all_rules(), index.stamp_of(folder))
    assert not (folder / "__pycache__").exists()


def test_rules_are_imported_when_they_are_asked(tmp_path: Path) -> None:
    package = tmp_path / "perflint"
    shutil.copytree(Path(perflint.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    runs = [
        subprocess.run(
            [sys.executable, "-c", SHOW],
            cwd=tmp_path, env=environment | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True,
        ).stdout.split()
        for _ in range(2)
    ]  # fmt: skip
    (rules, walked, codes), (again, kept, same) = runs
    assert (rules, codes) == (again, same) and int(rules) == len(all_rules())
    assert int(walked) > 20 and int(kept) == 0
