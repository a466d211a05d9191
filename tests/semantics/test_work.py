"""The work of a check from a cold start, counted: the files that it parses, and the summaries that it makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.semantics.callers import reach
from perflint.semantics.callers.kept import summaries
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source

ADAPTERS = """\
import heavy
class Adapters:
    def load(self, name):
        self._loaded = True
        self.table = heavy.read(name)
"""
TYPES = "import sys, typing, heavy\nif sys.version_info >= (3, 11):\n    Unpack = typing.Unpack\nelse:\n    Unpack = heavy.Any\n"
HEAVY = "def read(name): return [name]\n"


def model_of(folder: Path, files: dict[str, str], name: str) -> Model:
    for each, text in files.items():
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        (folder / each).write_text(text)
    model = Model(Source(str(folder / name), files[name]), Project(folder / each for each in files))
    model.infer()
    return model


def asked(model: Model) -> set[str]:
    """The names of the files that were summarised for a model."""
    return {path.name for path, _ in summaries(model.view.project)._known}


@pytest.mark.parametrize(
    ("read", "is_read"),
    [
        ("self._loaded", False),
        # Only a run of the method shows this value.
        ("self.table", True),
    ],
)
def test_a_flag_is_known_without_a_run_of_the_method_that_sets_it(tmp_path: Path, read: str, is_read: bool) -> None:
    net = (
        f"from adapters import Adapters\nclass Net(Adapters):\n    def forward(self, x):\n        if {read}: return x\n"
    )
    model = model_of(tmp_path, {"net.py": net, "adapters.py": ADAPTERS, "heavy.py": HEAVY}, "net.py")
    assert tmp_path / "adapters.py" in model.view.reads
    assert (tmp_path / "heavy.py" in model.view.reads) == is_read


def test_the_keywords_of_a_function_are_not_looked_up(tmp_path: Path) -> None:
    net = "from types_ import Unpack\ndef forward(x, **options: Unpack[dict]):\n    return x\n"
    model = model_of(tmp_path, {"net.py": net, "types_.py": TYPES, "heavy.py": HEAVY}, "net.py")
    assert tmp_path / "heavy.py" not in model.view.reads


def test_a_file_that_takes_another_name_is_not_run(tmp_path: Path) -> None:
    """One that imports something else of the package, and has a function of the same name, calls none of this file."""
    files = {
        "net/__init__.py": "from .ops import *\nfrom .other import *\n",
        "net/ops.py": "def scale(x): return x\n",
        "net/other.py": "def shift(x): return x\n",
        "run.py": "from net import scale\nscale(1)\n",
        "elsewhere.py": "import torch\nfrom net import shift\nshift(torch.scale(1))\n",
    }
    model = model_of(tmp_path, files, "net/ops.py")
    assert "run.py" in asked(model) and "elsewhere.py" not in asked(model)


SETTINGS = "class Config:\n    def __init__(self, size):\n        self.size = size\n"


@pytest.mark.parametrize(
    ("user", "is_run"),
    [
        ("from settings import Config\ndef f(config: Config): return config.size\n", False),
        ("from settings import Config\ndef f() -> 'Config | None': ...\n", False),
        ("from settings import Config\nclass Net:\n    config: Config\n", False),
        ("from settings import Config\ndef f(x): return x  # Config(3)\n", False),
        ("from settings import Config\ndef f(config: Config): return Config(config.size)\n", True),
        ("from settings import Config\nclass Big(Config): pass\n", True),
        ("from settings import Config\nregister(Config)\n", True),
        ("from settings import Config\ndef f(config: Config): return type(config)(3)\n", True),
        ("from settings import Config as C\nC(3)\n", True),
        ("import settings\nsettings.Config(3)\n", True),
        ("import settings\nKINDS = {'config': 'settings.Config'}\n", True),
    ],
)
def test_a_file_that_names_a_class_only_in_annotations_is_not_run(tmp_path: Path, user: str, is_run: bool) -> None:
    model = model_of(tmp_path, {"settings.py": SETTINGS, "user.py": user}, "settings.py")
    assert ("user.py" in asked(model)) == is_run


@pytest.mark.parametrize(
    ("function", "is_asked"),
    [
        ("def f(): return 1", False),
        ("def f(x: int, *rest: int, y: str = ''): return x", False),
        ("def f(x: int, y=''): return x", True),
        ("def f(x: torch.Tensor): return x", True),
        ("def f(x: typing.Any): return x", True),
        ("def f(x: int, *rest): return x", True),
        ("def f(x: int, **more): return x", True),
        ("def f(x: int, *, y): return x", True),
        ("class Net:\n    def f(self): return 1", False),
        ("class Net:\n    def f(self, x: int): self.x = x\n    def g(self): return self.x", False),
        ("class Net:\n    def f(self, x): self.x = x\n    def g(self): return self.x", True),
    ],
)
def test_calls_are_looked_up_for_parameters_without_a_type(tmp_path: Path, function: str, is_asked: bool) -> None:
    """The type of any other parameter says more of all callers than some calls do."""
    user = "from ops import *\nf(1)\nNet().f(1)\n"
    files = {"ops.py": f"import torch, typing\n{function}\n", "user.py": user}
    model = model_of(tmp_path, files, "ops.py")
    assert ("user.py" in asked(model)) == is_asked


CALLER = "from ops import f\nimport heavy\nf(heavy.x)\n"


@pytest.mark.parametrize(
    ("ops", "files", "is_asked"),
    [
        (1, {"heavy.py": 900}, True),
        (1, {"heavy.py": 1_100}, False),
        # A longer file may ask for more.
        (10, {"heavy.py": 1_100}, True),
        (1, {"heavy.py": "import more", "more.py": 1_100}, False),
        # A run reads only the names that it needs of a package.
        (1, {"heavy/__init__.py": 1_100}, True),
        (1, {"heavy/__init__.py": "import more", "more.py": 1_100}, True),
        (1, {"other.py": 1_100}, True),
    ],
)
def test_a_short_file_does_not_ask_a_caller_that_imports_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ops: int, files: dict[str, int | str], is_asked: bool
) -> None:
    monkeypatch.setattr(reach, "_LEAST_READ", 1_000)
    monkeypatch.setattr(reach, "_READ_PER_LINE", 100)
    monkeypatch.setattr(reach, "_STEP", 500)
    texts = {name: text if isinstance(text, str) else "x = 1\n" * text for name, text in files.items()}
    text = "def f(x): return x\n" + "\n" * ops
    model = model_of(tmp_path, {"ops.py": text, "caller.py": CALLER, **texts}, "ops.py")
    assert ("caller.py" in asked(model)) == is_asked
