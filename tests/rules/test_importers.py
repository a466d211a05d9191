"""Which files import a module, and what that says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.rules._weights import is_published, running
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source

RUNS = "scaler = GradScaler()\n"


def model_of(folder: Path, name: str, files: dict[str, str]) -> Model:
    for each, text in files.items():
        path = folder / each
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    project = Project(folder / each for each in files)
    return Model(Source(str(folder / name), files[name]), project)


@pytest.mark.parametrize(
    "statement",
    [
        "from nets.model import Net",
        "from nets.model import (\n    Net,\n    Other,\n)",
        "from nets import model",
        "from nets import Net",
        "import nets.model",
        "import os, nets.model as m",
        "    from nets.model import Net",
    ],
)
def test_an_absolute_import(tmp_path: Path, statement: str) -> None:
    inside = f"def run():\n{statement}\n" if statement.startswith(" ") else f"{statement}\n"
    files = {"nets/__init__.py": "", "nets/model.py": "", "train.py": inside + RUNS}
    assert [file.name for file in running(model_of(tmp_path, "nets/model.py", files))] == ["train"]


@pytest.mark.parametrize(
    ("path", "statement"),
    [
        ("nets/run.py", "from .model import Net"),
        ("nets/run.py", "from . import model"),
        ("nets/deep/run.py", "from ..model import Net"),
        ("nets/deep/__init__.py", "from ..model import Net"),
    ],
)
def test_a_relative_import(tmp_path: Path, path: str, statement: str) -> None:
    files = {"nets/__init__.py": "", "nets/deep/__init__.py": "", "nets/model.py": "", path: f"{statement}\n{RUNS}"}
    assert len(list(running(model_of(tmp_path, "nets/model.py", files)))) == 1


@pytest.mark.parametrize(
    "statement",
    ["from other.model import Net", "import models", "from nets.model2 import Net", "# from nets import Net"],
)
def test_other_imports(tmp_path: Path, statement: str) -> None:
    files = {"nets/__init__.py": "", "nets/model.py": "", "train.py": f"{statement}\n{RUNS}"}
    assert not list(running(model_of(tmp_path, "nets/model.py", files)))


def test_a_file_without_a_word_of_interest_is_left_out(tmp_path: Path) -> None:
    files = {"model.py": "", "train.py": "from model import Net\n"}
    assert not list(running(model_of(tmp_path, "model.py", files)))


def test_published_weights(tmp_path: Path) -> None:
    fetches = "from model import Net\nNet().load_state_dict(torch.hub.load_state_dict_from_url(URL))\n"
    assert is_published(model_of(tmp_path / "own", "model.py", {"model.py": "def net(pretrained=False): ...\n"}))
    assert is_published(model_of(tmp_path / "by", "model.py", {"model.py": "class Net: ...\n", "hub.py": fetches}))
    other = "from model import Net\nbackbone = resnet50(pretrained=True)\n"
    assert not is_published(model_of(tmp_path / "no", "model.py", {"model.py": "class Net: ...\n", "train.py": other}))
