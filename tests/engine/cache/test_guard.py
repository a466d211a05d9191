"""A guard for the speed of the cache: it counts the work that is done, since seconds depend on the machine."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.files import Means, check_files
from perflint.semantics import model
from perflint.source import text as texts
from perflint.source.files import below

AUDIT = Settings(profile=Profile.AUDIT)
SAMPLE = Path(__file__).parent.parent / "order_sample"


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts models, summaries and parsed files."""
    counts: Counter[str] = Counter()
    make, parse = model.Model.__init__, texts.parse

    def made(self: model.Model, *arguments: object, **named: object) -> None:
        counts[str(arguments[2].name if len(arguments) > 2 else "PROJECT")] += 1  # type: ignore[attr-defined]
        make(self, *arguments, **named)  # type: ignore[arg-type]

    def parsed(text: str) -> object:
        counts["parsed"] += 1
        return parse(text)

    monkeypatch.setattr(model.Model, "__init__", made)
    monkeypatch.setattr(texts, "parse", parsed)
    monkeypatch.setattr("perflint.semantics.project.parse", parsed)
    return counts


def test_work_is_done_once(work: Counter[str], tmp_path: Path) -> None:
    folder = tmp_path / "project"
    shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "pyproject.toml").write_text("")
    files = list(below(str(folder), AUDIT))
    means = Means(cache=tmp_path / "cache")

    def run(*which: str) -> Counter[str]:
        work.clear()
        for _ in check_files(which or files, active_rules(AUDIT), AUDIT, means=means):
            pass
        return Counter(work)

    cold = run()
    # Each file is checked once, and has one summary in each round at most.
    rounds = model.LAST + 1
    assert cold["PROJECT"] == len(files) and 0 < cold["FILE"] <= rounds * len(files)
    assert cold["parsed"] <= 2 * len(files)
    assert not run()
    # No other file reads this one, so the summaries of the others hold.
    train = folder / "train.py"
    train.write_text(train.read_text() + "\n\ndef added(x):\n    return x + 1\n")
    edited = run(str(train))
    assert edited["PROJECT"] == 1 and edited["FILE"] <= rounds
