"""Code that prepares data is on the host, unless it says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source

TEXT = """\
import torch


def {name}(labels: torch.Tensor) -> torch.Tensor:
    return torch.unique(labels{move})
"""


def shown(tmp_path: Path, path: str, name: str = "ids", move: str = "") -> int:
    """How many findings the default profile has in a file of a package."""
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    for folder in [file.parent, *file.parent.parents][: len(Path(path).parts) - 1]:
        (folder / "__init__.py").touch()
    file.write_text(TEXT.format(name=name, move=move))
    rules = RuleSet(rule for rule in all_rules() if rule.code == "TPF113")
    report = check_source(
        Source(str(file), file.read_text()), Project([file]), rules, Settings(profile=Profile.DEFAULT)
    )
    assert report.files == 1 and not report.problems
    return len(report.findings)


@pytest.mark.parametrize(
    "path",
    ["project/data/labels.py", "project/my_dataset.py", "project/replay_buffers/a.py", "p/image_processing_vit.py"],
)
def test_what_prepares_data_is_left_to_audit(tmp_path: Path, path: str) -> None:
    assert shown(tmp_path, path) == 0


@pytest.mark.parametrize("path", ["project/model.py", "project/metadata/labels.py", "project/update.py"])
def test_other_code_is_not(tmp_path: Path, path: str) -> None:
    assert shown(tmp_path, path) == 1


def test_folders_above_the_package_say_nothing(tmp_path: Path) -> None:
    assert shown(tmp_path / "data" / "datasets", "project/model.py") == 1


def test_what_a_model_gave_is_on_the_device(tmp_path: Path) -> None:
    assert shown(tmp_path, "p/image_processing_vit.py", "post_process_labels") == 1


def test_what_is_moved_in_sight_is_on_the_device(tmp_path: Path) -> None:
    assert shown(tmp_path, "project/data/labels.py", move=".cuda()") == 1
