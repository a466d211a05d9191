"""Where a project turns the validation of its distributions off."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.rules._project_text import some_file_says
from perflint.rules.sync.distributions_validate import SWITCHED_OFF
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source

POLICY = "from torch.distributions import Normal\n\ndef policy(mean, std):\n    return Normal(mean, std)\n"


def switched_off(folder: Path, **others: str) -> bool:
    paths = [folder / "policy.py", *(folder / f"{name}.py" for name in others)]
    for path, text in zip(paths, (POLICY, *others.values()), strict=True):
        path.write_text(text)
    return some_file_says(Model(Source(str(paths[0]), POLICY), Project(paths)), SWITCHED_OFF)


@pytest.mark.parametrize(
    "switch",
    [
        "torch.distributions.Distribution.set_default_validate_args(False)",
        "D.Normal.set_default_validate_args( value=False )",
        "torch.distributions.Distribution._validate_args = False",
    ],
)
def test_a_switch_holds_for_all_files_of_a_program(tmp_path: Path, switch: str) -> None:
    assert switched_off(tmp_path, train=f"import torch, policy\n{switch}\n", data="x = 1\n")
    assert switched_off(tmp_path, train="import policy, settings\n", settings=f"import torch\n{switch}\n")
    assert not switched_off(tmp_path, train="import policy\n", settings="", other=f"import torch\n{switch}\n")


@pytest.mark.parametrize(
    "no_switch",
    [
        "Distribution.set_default_validate_args(True)",
        "Normal.set_default_validate_args = False",
        "my_set_default_validate_args(False)",
        "Distribution._validate_args = True",
        "Distribution._validate_args == False",
        "Normal._validate_args = False",
        "MyDistribution._validate_args = False",
        "",
    ],
)
def test_what_is_no_switch(tmp_path: Path, no_switch: str) -> None:
    assert not switched_off(tmp_path, train=f"import policy\n{no_switch}\n")


def test_a_file_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path / "policy.py"
    path.write_text(POLICY)
    project = Project([path, tmp_path / "missing.py", tmp_path])
    assert not some_file_says(Model(Source(str(path), POLICY), project), SWITCHED_OFF)
