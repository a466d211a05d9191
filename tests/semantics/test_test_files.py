"""Which files are tests: one answer for all."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.findings import Heat
from perflint.rules._methods import in_tests
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.test_files import is_test_path
from perflint.source.text import Source

PROGRAM = "import torch\nfor x in torch.utils.data.DataLoader(data):\n    net(x)\n"
CHECKS = "def test_net():\n    assert net(1) == 1\n"

FILES = [
    ("train.py", PROGRAM, False),
    ("test.py", PROGRAM, False),
    ("test_on_images.py", PROGRAM, False),
    ("test/run.py", PROGRAM, False),
    ("latest/run.py", PROGRAM, False),
    ("contest.py", CHECKS, False),
    ("test_net.py", CHECKS, True),
    ("net_test.py", CHECKS, True),
    ("test/nets/net.py", CHECKS, True),
    ("test/test_net.py", PROGRAM, True),
    ("test_net.py", "import pytest\n", True),
    ("net_test.py", "from unittest import TestCase\n", True),
    ("conftest.py", "", True),
    ("tests/models.py", PROGRAM, True),
    ("pkg/tests/unit/models.py", PROGRAM, True),
]


@pytest.mark.parametrize(("name", "text", "expected"), FILES)
@pytest.mark.parametrize("inside", [True, False])
def test_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, expected: bool, inside: bool
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if inside:
        monkeypatch.chdir(tmp_path)
    for folder in path.parents:
        # The packages of a project that is checked from elsewhere.
        if not inside and folder != tmp_path and tmp_path in folder.parents:
            (folder / "__init__.py").touch()
    model = Model(Source(name if inside else str(path), text), Project())
    assert in_tests(model) is expected
    if expected:
        assert all(model.heat(node) is Heat.COLD for node in model.module.tree.body)


def test_folders_above_the_project_say_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "tests" / "project"
    project.mkdir(parents=True)
    path = project / "train.py"
    path.write_text(PROGRAM, encoding="utf-8")
    assert not in_tests(Model(Source(str(path), PROGRAM), Project()))
    monkeypatch.chdir(project)
    assert not in_tests(Model(Source("train.py", PROGRAM), Project()))


def test_by_the_path_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_test_path(tmp_path / "test_net.py") and is_test_path(tmp_path / "test" / "data.py")
    assert not is_test_path(tmp_path / "train.py")
