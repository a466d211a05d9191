"""Calls of functions that the settings declare to wait, by the classes of their objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.file import check_source
from perflint.engine.projects import Projects
from perflint.source.text import Source

TEXT = """\
import torch
from mylib import Reader


class Mine(Reader):
    def own(self):
        return 1


def train(model, loader):
    reader = Mine()
    for x in loader:
        reader.wait(model(x.cuda()))
        reader.own()
        (lambda: 1)()
        [].wait()
"""


@pytest.mark.parametrize(
    ("name", "lines"),
    [("mylib.Reader.wait", [13]), ("mylib.Reader.own", []), ("mylib.Other.wait", []), ("Reader.*", [13])],
)
def test_methods_of_a_base_class(tmp_path: Path, name: str, lines: list[int]) -> None:
    (tmp_path / "pyproject.toml").touch()
    path = tmp_path / "a.py"
    path.write_text(TEXT)
    settings = Settings(profile=Profile.AUDIT, sync_functions=(name,))
    project = Projects(settings).of(path)
    report = check_source(Source(str(path), TEXT), project, active_rules(settings), settings)
    assert not report.problems
    assert [each.span.line for each in report.findings if each.code == "TPF137"] == lines
