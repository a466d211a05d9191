"""Which files of a project use a function of another, and how that tells how often it runs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.regions.cpu_code import uses_of
from perflint.source.text import Source

OPS = """\
import torch
def scale(x):
    return x.max().item()
if __name__ == "__main__":
    scale(torch.rand(3))
"""


def model_of(folder: Path, name: str, files: dict[str, str]) -> Model:
    for each, text in files.items():
        path = folder / each
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    project = Project(folder / each for each in files)
    return Model(Source(str(folder / name), files[name]), project)


def heat_of_read(model: Model) -> str:
    (read,) = (call for call in model.nodes(ast.Call) if ast.unparse(call).endswith(".item()"))
    return model.heat(read).value


@pytest.mark.parametrize(
    ("statement", "heat"),
    [
        ("from nets.ops import scale\ndef use(x):\n    scale(x)\n", "warm"),
        ("from nets.ops import scale as s\ndef use(x):\n    s(x)\n", "warm"),
        ("from nets import ops\ndef use(x):\n    ops.scale(x)\n", "warm"),
        ("import nets.ops\ndef use(x):\n    nets.ops.scale(x)\n", "warm"),
        ("from nets.ops import *\ndef use(x):\n    scale(x)\n", "warm"),
        ("def f():\n    from nets.ops import (\n        scale,\n    )\n", "warm"),
        ("from nets.other import scale\nscale(x)\n", "cold"),
        ("from nets.ops import shift\nshift(x)\n", "cold"),
        ("", "cold"),
    ],
)
def test_what_other_files_import_is_not_for_tests_alone(tmp_path: Path, statement: str, heat: str) -> None:
    files = {"nets/__init__.py": "", "nets/ops.py": OPS, "train.py": statement}
    assert heat_of_read(model_of(tmp_path, "nets/ops.py", files)) == heat


def test_what_a_package_imports_for_others_is_used_by_these(tmp_path: Path) -> None:
    files = {"nets/__init__.py": "from .ops import scale\n", "nets/ops.py": OPS, "train.py": "from nets import scale\n"}
    model = model_of(tmp_path, "nets/ops.py", files)
    assert [file.name for file in model.view.importers("nets.ops", "scale")] == ["nets", "train"]
    assert heat_of_read(model) == "warm"


def test_what_only_tests_import_is_for_tests_alone(tmp_path: Path) -> None:
    files = {"nets/__init__.py": "", "nets/ops.py": OPS, "tests/test_ops.py": "from nets.ops import scale\nscale(1)\n"}
    assert heat_of_read(model_of(tmp_path, "nets/ops.py", files)) == "cold"


def test_uses_are_names_and_attributes(tmp_path: Path) -> None:
    train = "from nets.ops import scale as s\nimport nets.ops\ns(x)\nnets.ops.scale\nother.scale(x)\nshift(x)\n"
    files = {"nets/__init__.py": "", "nets/ops.py": OPS, "train.py": train}
    uses = list(uses_of(model_of(tmp_path, "nets/ops.py", files).view, "nets.ops", "scale"))
    # Of an object that is not known, any method of that name may be meant.
    assert sorted(ast.unparse(use.node) for use in uses) == ["nets.ops.scale", "other.scale", "s"]
    assert {use.module.name for use in uses} == {"train"}
