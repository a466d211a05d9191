"""Folders that code puts on the path of modules, and what scripts import from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.search_path import added_folders
from perflint.source.text import Source

FOLDERS = [Path("/"), *map(Path, ("/p", "/p/include", "/p/src", "/p/src/lib", "/p/run"))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sys.path.append('include')", ["/p/include"]),
        ("sys.path.insert(0, '../include/')", ["/p/include"]),
        ("sys.path.append('/home/ann/p/include')", ["/p/include"]),
        ("sys.path.append('C:\\\\ann\\\\include')", ["/p/include"]),
        ("sys.path.append(os.path.join(HERE, '..', 'src', 'lib'))", ["/p/src/lib", "/p/src"]),
        ("sys.path.extend(['include', 'src'])", ["/p/include", "/p/src"]),
        ("sys.path.append(str(ROOT))", []),
        ("def add(folder):\n    sys.path.insert(0, folder)\nadd(join(HERE, 'include'))", ["/p/include"]),
        ("def add(folder):\n    sys.path.insert(0, folder)\nadd(join(HERE, 'other'))", []),
        ("sys.path.append('..')", []),
        ("sys.path.append('/opt/other')", []),
        ("print(sys.path, 'include')", []),
    ],
)
def test_folders(text: str, found: list[str]) -> None:
    assert added_folders([(Path("/p/run/train.py"), text)], FOLDERS) == tuple(map(Path, found))


def _project(folder: Path, texts: dict[str, str]) -> Project:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Project(files=sorted(folder / name for name in texts), settings=[])


TEXTS = {
    "include/helper.py": "def read(x):\n    return x.item()\n",
    "include/kit/__init__.py": "",
    "include/kit/more.py": "def read(x):\n    return x.item()\n",
    "run/train.py": "import sys\nsys.path.append('../include')\nimport helper\nfrom kit.more import read\n"
    "for x in loader:\n    loss(x).backward()\n    helper.read(x.cuda())\n    read(x.cuda())\n",
}


def test_an_import_leads_to_the_file(tmp_path: Path) -> None:
    project = _project(tmp_path, TEXTS)
    path = tmp_path / "run" / "train.py"
    view = Model(Source(str(path), TEXTS["run/train.py"]), project).view
    module = view.at(path)
    assert module is not None
    assert view.locate("helper", module) == tmp_path / "include" / "helper.py"
    assert view.locate("kit.more", module) == tmp_path / "include" / "kit" / "more.py"
    assert view.locate("other", module) is None


@pytest.mark.parametrize("name", ["include/helper.py", "include/kit/more.py"])
@pytest.mark.parametrize("is_added", [True, False])
def test_calls_are_found(tmp_path: Path, name: str, is_added: bool) -> None:
    texts = dict(TEXTS)
    if not is_added:
        texts["run/train.py"] = texts["run/train.py"].replace("sys.path.append", "print")
    model = Model(Source(str(tmp_path / name), texts[name]), _project(tmp_path, texts))
    info = model.module.named_function("read")
    assert info is not None
    assert (model.chain(info) is not None) == is_added
