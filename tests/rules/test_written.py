"""Functions that write tensors, in a project that uses a library and in the library itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.file import check_source
from perflint.frozen import replace
from perflint.semantics.project import Project
from perflint.source.text import Source

USER = """
import torch
from torchvision.utils import save_image

def show(x: torch.Tensor):
    save_image(x.cuda(), "grid.png")
"""


@pytest.mark.parametrize(("is_library", "found"), [(False, ["TPF109"]), (True, [])])
def test_the_library_itself(is_library: bool, found: list[str], tmp_path: Path) -> None:
    file = tmp_path / "torchvision" / "show.py"
    file.parent.mkdir()
    file.write_text(USER, "utf-8")
    files = [file]
    if is_library:
        files += [file.with_name("__init__.py"), file.with_name("utils.py")]
        files[1].write_text("", "utf-8")
        files[2].write_text("def save_image(x, path):\n    open(path, 'wb').write(x.cpu().numpy())\n", "utf-8")
    settings = replace(Settings(), profile=Profile.AUDIT)
    report = check_source(Source(str(file), USER), Project(files), active_rules(settings), settings)
    assert [finding.code for finding in report.findings if finding.code == "TPF109"] == found
