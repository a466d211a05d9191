"""Names that other files take from a file, and fixes that leave them as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.cli.main import main
from perflint.config.settings import Settings
from perflint.engine import projects
from perflint.engine.projects import Projects
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.purpose.takers import is_taken
from perflint.source.text import Source
from tests.tracer.warm import script

OWN = "from torch.cuda.amp import autocast\n"


def put(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def taken(folder: Path, files: dict[str, str], of: str = "pkg/utils.py", alone: bool = False) -> bool:
    """True if another file may take `autocast` from one, which may be checked alone."""
    put(folder, {"pkg/__init__.py": "", of: OWN} | files)
    paths = [folder / name for name in ("pkg/__init__.py", of, *files)]
    (folder / "setup.py").touch()
    project = Projects(Settings()).of(folder / of) if alone else Project(paths)
    return is_taken(Model(Source(str(folder / of), OWN), project), "autocast")


TAKEN = [
    "from pkg.utils import autocast",
    "from pkg.utils import other, autocast as cast",
    "from pkg.utils import (\n    other,\n    autocast,\n)",
    "from pkg.utils import *\nautocast()",
    "from .utils import autocast",
    "def f():\n    from pkg.utils import autocast",
    "import pkg.utils\npkg.utils.autocast()",
    "import pkg.utils as u\nu.autocast()",
    "from pkg import utils\nutils.autocast()",
    "from pkg import utils as u\nu.autocast()",
    "from . import utils\nutils.autocast()",
    "from pkg import utils\ngetattr(utils, 'autocast')()",
    "patch('pkg.utils.autocast')",
    # A script that is started in its folder.
    "from utils import autocast",
    "from pkg.utils import other\nautocast = other.autocast(",
]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("text", TAKEN)
def test_names_that_are_taken(tmp_path: Path, text: str, alone: bool) -> None:
    assert taken(tmp_path, {"pkg/train.py": text}, alone=alone)


NOT_TAKEN = [
    "",
    "from torch.cuda.amp import autocast",
    "from pkg.utils import other\nfrom torch.cuda.amp import autocast\nautocast()",
    "from pkg.tools import autocast",
    "from pkg.tools import *\nautocast()",
    "from pkg.utils import *\nother()",
    "from pkg import utils\nutils.other()\nimport torch\ntorch.cuda.amp.autocast()",
    "# from pkg.utils import autocast",
    "import pkg.utils\nself.autocast()",
]


@pytest.mark.parametrize("text", NOT_TAKEN)
def test_names_that_are_not_taken(tmp_path: Path, text: str) -> None:
    assert not taken(tmp_path, {"pkg/train.py": text})


@pytest.mark.parametrize(
    ("further", "is_taken"),
    [
        ({"b.py": "from pkg.a import autocast"}, True),
        ({"b.py": "from pkg.a import *", "c.py": "import pkg.b\npkg.b.autocast()"}, True),
        ({"pkg/all/__init__.py": "from pkg.a import *"}, True),
        ({"b.py": "from pkg.a import other"}, False),
        ({"b.py": "from pkg.a import *", "pkg/b.py": "from pkg.utils import *"}, False),
    ],
)
def test_names_that_are_taken_with_all_others(tmp_path: Path, further: dict[str, str], is_taken: bool) -> None:
    """A file that takes all names passes each of them on, to files and as a package."""
    assert taken(tmp_path, {"pkg/a.py": "from pkg.utils import *"} | further) is is_taken


def test_names_of_a_package(tmp_path: Path) -> None:
    assert taken(tmp_path / "a", {"train.py": "from pkg import autocast"}, of="pkg/__init__.py")
    assert taken(tmp_path / "b", {"pkg/train.py": "from . import autocast"}, of="pkg/__init__.py")
    assert not taken(tmp_path / "c", {"pkg/train.py": "from .utils import autocast"}, of="pkg/__init__.py")


def test_a_private_name_is_not_behind_a_star(tmp_path: Path) -> None:
    put(tmp_path, {"utils.py": OWN, "train.py": "from utils import *\nautocast, _autocast\n"})
    model = Model(Source(str(tmp_path / "utils.py"), OWN), Projects(Settings()).of(tmp_path / "utils.py"))
    assert is_taken(model, "autocast") and not is_taken(model, "_autocast")


def test_what_is_too_much_to_read_may_take_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "_MOST_FILES", 3)
    assert taken(tmp_path, {f"pkg/{number}.py": "" for number in range(4)}, alone=True)


def test_excluded_folders_do_not_count(tmp_path: Path) -> None:
    assert not taken(tmp_path, {".venv/train.py": "from pkg.utils import autocast"}, alone=True)


FILES = {
    "helpers.py": """import torch
from torch.cuda.amp import GradScaler, autocast


def state():
    with autocast():
        return torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
""",
    "train.py": """from helpers import autocast, state

print(state())
with autocast(enabled=False):
    print(state())
""",
}


@pytest.mark.parametrize("paths", [["."], ["helpers.py"]])
def test_a_fix_leaves_what_others_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: list[str]) -> None:
    pytest.importorskip("torch")
    put(tmp_path, FILES)
    monkeypatch.chdir(tmp_path)
    before = script(tmp_path, "train.py")
    main(["fix", "--apply", "--isolated", "--torch-version", "2.6", "--select", "TPF902", *paths])
    fixed = Path("helpers.py").read_text(encoding="utf-8")
    assert "from torch.cuda.amp import GradScaler, autocast\n" in fixed
    assert 'with torch.amp.autocast("cuda", dtype=torch.float16):\n' in fixed
    after = script(tmp_path, "train.py")
    assert before.code == after.code == 0 and after.out == before.out


MODEL = """import torch
from torch import nn

VOCABULARY = 50257


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(768, VOCABULARY)

    def forward(self, x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return self.head(x)
"""


def test_a_size_that_others_take_is_not_padded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, {"model.py": MODEL})
    command = ["fix", "--isolated", "--risky-fixes", "--select", "TPF352", str(tmp_path / "model.py")]
    main(command)
    assert "+VOCABULARY = 50304" in capsys.readouterr().out
    put(tmp_path, {"data.py": "from model import VOCABULARY\n\nids = range(VOCABULARY)\n"})
    main(command)
    assert not capsys.readouterr().out
