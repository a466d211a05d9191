"""Functions that write tensors or wait, in a project that uses a library and in the library itself."""

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


GRAPH = """
import torch
from torch_geometric.utils import remove_self_loops

def connect(edges: torch.Tensor):
    return remove_self_loops(edges.cuda())
"""
WRITES = ("TPF109", USER, "torchvision", "def save_image(x, path):\n    open(path, 'wb').write(x.cpu().numpy())\n")
WAITS = (
    "TPF136",
    GRAPH,
    "torch_geometric",
    "def remove_self_loops(edges):\n    return edges[:, edges[0] != edges[1]]\n",
)


@pytest.mark.parametrize("is_library", [False, True])
@pytest.mark.parametrize(("code", "user", "library", "body"), [WRITES, WAITS])
def test_the_library_itself(code: str, user: str, library: str, body: str, is_library: bool, tmp_path: Path) -> None:
    file = tmp_path / library / "show.py"
    file.parent.mkdir()
    file.write_text(user, "utf-8")
    files = [file]
    if is_library:
        files += [file.with_name("__init__.py"), file.with_name("utils.py")]
        files[1].write_text("", "utf-8")
        files[2].write_text(body, "utf-8")
    settings = replace(Settings(), profile=Profile.AUDIT)
    report = check_source(Source(str(file), user), Project(files), active_rules(settings), settings)
    assert [finding.code for finding in report.findings if finding.code == code] == ([] if is_library else [code])
