"""Searches in the texts of a project, and the record that a view keeps of them."""

from __future__ import annotations

import pickle
import re
from itertools import pairwise
from pathlib import Path

import pytest

from perflint.semantics.changes import changes_of
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.texts import Question
from perflint.semantics.view import Answers, Record, View
from perflint.source.text import Source

FILES = {
    "net/__init__.py": "from .ops import scale\n",
    "net/ops.py": "def scale(x): ...\n",
    "net/layers.py": "from . import ops\n",
    "train.py": "from net import scale\nimport settings\n",
    "settings.py": "SWITCH = False\n",
    "other.py": "SWITCH = True\n",
}


def project_of(folder: Path, files: dict[str, str] = FILES) -> Project:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return Project(folder / name for name in files)


def names(files: object) -> list[str]:
    return [file.name for file in files]  # type: ignore[attr-defined]


def test_importers_also_through_other_modules(tmp_path: Path) -> None:
    texts = project_of(tmp_path).texts
    assert names(texts.importers("net.ops", "scale")) == ["net", "train"]
    assert names(texts.importers("net.ops", "shift")) == []
    assert names(texts.around("net.ops")) == ["net", "net.layers", "train"]
    assert names(texts.naming("settings")) == ["train"]


@pytest.mark.parametrize(
    ("statement", "is_importer"),
    [
        ("from net.ops import scale", True),
        ("from net.ops import *", True),
        ("from net import ops", True),
        ("import net.ops", True),
        ("from net.ops import (shift,  # first (of two), not last\n    scale)", True),
        ("from net.ops import (\n    # scale\n    shift,\n)", False),
        ("from net.ops import shift, \\\n    scale", True),
        ("import os, \\\n    net.ops", True),
        ("import os  # import of net\nfrom net.ops import shift, scale as resize  # and import nothing else", True),
        ("import os, net.ops; import sys", True),
        ("from net.ops import (shift, scale,)", True),
        # The file mentions the name, but takes another one of the module.
        ("from net.ops import shift", False),
        ("from net import shift", False),
        ("from net.other import scale", False),
    ],
)
def test_an_importer_takes_the_name_or_the_module(tmp_path: Path, statement: str, is_importer: bool) -> None:
    files = {"net/__init__.py": "from .ops import *\n", "net/ops.py": "def scale(x): ...\n"}
    texts = project_of(tmp_path, {**files, "train.py": f"{statement}\ntorch.scale(1)\n"}).texts
    assert ("train" in names(texts.importers("net.ops", "scale"))) == is_importer
    assert ("train" in names(texts.around("net.ops"))) == (statement != "from net.other import scale")


@pytest.mark.parametrize(
    ("statement", "is_passed_on"),
    [
        ("from net.ops import scale", True),
        ("from net.ops import scale as scale", True),
        ("from net.ops import shift as scale, scale as resize", False),
        ("from net.ops import scale as resize", False),
        ("from net.ops import (\n    scale as resize,  # theirs\n)", False),
        ("from net.ops import scale as resize\nfrom net.ops import scale", True),
        ("from net.ops import scale as resize, scale", True),
        ("import net.ops as ops", True),
        ("from net.ops import scale as resize\nscale = compiled(resize)", True),
        ("from net.ops import scale as resize\nif resize:\n    scale: object = resize", True),
    ],
)
def test_a_name_that_is_imported_as_another_one_is_not_passed_on(
    tmp_path: Path, statement: str, is_passed_on: bool
) -> None:
    files = {"net/ops.py": "def scale(x): ...\n", "own.py": f"{statement}\ndef scale(x): ...\n"}
    texts = project_of(tmp_path, {**files, "train.py": "from own import scale\nscale(1)\n"}).texts
    assert names(texts.importers("net.ops", "scale")) == ["own", *["train"] * is_passed_on]


@pytest.mark.parametrize("text", ["# from net.ops import scale", "import os  # import net.ops", "x = 'import net.ops'"])
def test_a_comment_imports_nothing(tmp_path: Path, text: str) -> None:
    texts = project_of(tmp_path, {"net/ops.py": "def scale(x): ...\n", "train.py": f"{text}\nscale(1)\n"}).texts
    assert names(texts.importers("net.ops", "scale")) == names(texts.around("net.ops")) == []


def test_a_few_questions_read_few_imports(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "__init__.py").write_text("from p.a import *\n")
    (tmp_path / "p" / "a.py").write_text("def f(): ...\n")
    (tmp_path / "b.py").write_text("from p import f\nf()\n")
    (tmp_path / "c.py").write_text("import p.a\nimport os\n")
    files = [tmp_path / name for name in ("p/__init__.py", "p/a.py", "b.py", "c.py")]
    few, all_read = Project(files).texts, Project(files).texts
    all_read.load()
    answers = [tuple(file.path.name for file in texts.importers("p.a", "f")) for texts in (few, all_read)]
    assert answers[0] == answers[1] == ("b.py", "__init__.py")
    assert all_read.has_read_imports and not few.has_read_imports


def test_files_of_one_process(tmp_path: Path) -> None:
    project, switch = project_of(tmp_path), re.compile("SWITCH")
    assert names(project.texts.matching(switch)) == ["other", "settings"]

    def beside(path: Path) -> list[str]:
        model = Model(Source(str(path), path.read_text()), project)
        return names(model.view.beside(model.module, switch))

    # train.py imports both; nothing imports other.py.
    assert beside(tmp_path / "net" / "ops.py") == ["settings"]
    assert beside(tmp_path / "other.py") == ["other"]


def test_an_overlay_answers_for_its_texts_and_leaves_the_project_as_it_is(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    assert names(project.texts.importers("net.ops", "scale")) == ["net", "train"]
    changed = project.overlay(
        {tmp_path / "train.py": "import settings\n", tmp_path / "new.py": "from net import scale\n"}
    )
    assert names(changed.texts.importers("net.ops", "scale")) == ["net", "new"]
    assert names(project.texts.importers("net.ops", "scale")) == ["net", "train"]
    module = changed.module_at(tmp_path / "new.py")
    assert module is not None and module.name == "new"


def test_an_overlay_locates_imports_anew_if_a_file_is_new(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    assert project.located("net.ops", tmp_path).file == tmp_path / "net" / "ops.py"
    assert project.located("losses", tmp_path).file is None
    edited = project.overlay({tmp_path / "net" / "ops.py": "SIZE = 2\n"})
    assert edited.located("net.ops", tmp_path) is project.located("net.ops", tmp_path)
    assert edited.located("losses", tmp_path).file is None
    for below in (project, edited):
        larger = below.overlay({tmp_path / "losses.py": "def loss(): ...\n", tmp_path / "old" / "__init__.py": ""})
        assert larger.located("losses", tmp_path).file == tmp_path / "losses.py"
        assert larger.name_of(tmp_path / "old" / "a.py") == "old.a"
        again = larger.overlay({tmp_path / "losses.py": "def loss(x): ...\n"})
        assert again.located("losses", tmp_path) is larger.located("losses", tmp_path)
        assert below.located("losses", tmp_path).file is None and below.name_of(tmp_path / "old" / "a.py") == "a"


def test_an_overlay_that_is_asked_first_knows_its_new_files(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    changed = project.overlay({tmp_path / "new.py": "from net import scale\n"})
    again = changed.overlay({tmp_path / "train.py": "import settings\n"})
    assert names(again.texts.importers("net.ops", "scale")) == ["net", "new"]
    assert names(changed.texts.importers("net.ops", "scale")) == ["net", "new", "train"]


def test_a_view_records_what_it_reads_and_asks(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    text = "import torch\nfrom net.ops import scale\nfrom net.gone import lost\nscale(torch.ones(1))\nlost()\n"
    model = Model(Source(str(tmp_path / "run.py"), text), project)
    assert model.steps > 0
    view = model.view
    read = {path.relative_to(tmp_path).as_posix(): module is not None for path, module in view.reads.items()}
    assert read["net/ops.py"] and not read["net/gone.py"] and not read["net/gone"]
    # One missing folder stands for all files in it.
    assert "net/gone/__init__.py" not in read
    assert "train.py" not in read
    view.importers("net.ops", "scale")
    answer = view.questions[Question("importers", ("net.ops", "scale"))]
    assert [path.name for path in answer] == ["__init__.py", "train.py"]


READS = {
    "train.py": "import net.ops\nimport net\n",
    "net/__init__.py": "from .other import shift\n" + "\n" * 1_000,
    "net/ops.py": "from net import base\n" + "\n" * 250,
    "net/base.py": "import net.ops\n" + "\n" * 140,
    "net/other.py": "\n" * 1_000,
}


@pytest.mark.parametrize(("name", "hundreds"), [("train", 3), ("net/ops", 3), ("net/other", 10)])
def test_the_lines_that_a_file_imports(tmp_path: Path, name: str, hundreds: int) -> None:
    """Circles are counted once, and packages not at all."""
    texts, path = project_of(tmp_path, READS).texts, tmp_path / f"{name}.py"
    assert not texts.light(str(path), str(hundreds - 1))
    assert [file.path for file in texts.light(str(path), str(hundreds))] == [path]
    assert not texts.light(str(tmp_path / "gone.py"), "100")


@pytest.mark.parametrize(
    ("file", "text", "is_kept"),
    [
        ("net/base.py", "import net.ops\n" + "\n" * 141, True),
        ("net/other.py", "\n" * 2_000, True),
        ("net/base.py", "import net.ops\n" + "\n" * 300, False),
        ("net/base.py", "import net.ops, net.other\n" + "\n" * 140, False),
        ("net/base.py", "import net.ops, os\n" + "\n" * 140, True),
    ],
)
def test_an_edit_may_change_the_lines_that_a_file_imports(tmp_path: Path, file: str, text: str, is_kept: bool) -> None:
    project = project_of(tmp_path, READS)
    view = View(project)
    assert view.is_light(tmp_path / "train.py", 3)
    edited = project.overlay({tmp_path / file: text})
    assert changes_of(edited).spare(view.record, edited) == is_kept
    assert View(edited).is_light(tmp_path / "train.py", 3) == is_kept


def test_users_come_first_also_through_packages(tmp_path: Path) -> None:
    texts = {
        "ops.py": "import base\n",
        "base.py": "",
        "net/__init__.py": "from .layers import Layer\nfrom .losses import *\n",
        "net/layers.py": "from ops import scale\nfrom .train import circle\n",
        "net/losses.py": "",
        "net/train.py": "from . import Layer, loss as criterion\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    project = Project([tmp_path / name for name in texts])
    order = [path.name for path in project.texts.users_first(tmp_path / name for name in sorted(texts, reverse=True))]
    assert sorted(order) == sorted(Path(name).name for name in texts)
    for user, used in pairwise(["train.py", "layers.py", "ops.py", "base.py"]):
        assert order.index(user) < order.index(used)
    assert order.index("train.py") < order.index("losses.py")
    assert project.texts.users_first([tmp_path / "base.py", tmp_path / "gone.py"]) == [tmp_path / "base.py"]


class Kept(dict[Question, object]):
    """Answers in a cache, which cost something to read."""

    def __getitem__(self, question: Question) -> object:
        raise LookupError(question)


def test_records_are_joined_without_reading_their_answers(tmp_path: Path) -> None:
    ask = {word: Question("mentioning", (word,)) for word in ("a", "b", "c")}
    view = View(project_of(tmp_path, {"a.py": "a\n"}))
    view.rests_on(Record(frozenset(), frozenset(), Kept({ask["a"]: (), ask["b"]: ()})))
    view.rests_on(Record(frozenset(), frozenset(), {ask["b"]: (tmp_path,)}))
    again = View(view.project)
    again.rests_on(view.record)
    again.mentioning("c")
    record = again.record
    assert set(record.questions) == {*ask.values()}
    assert (record.questions[ask["b"]], record.questions[ask["c"]]) == ((tmp_path,), ())
    with pytest.raises(LookupError):
        record.questions[ask["a"]]
    assert pickle.loads(pickle.dumps(Answers([{ask["b"]: 1}]))) == {ask["b"]: 1}


@pytest.mark.parametrize("asks", ["mentioning", "naming", "around", "matching", "importers"])
def test_an_answer_that_the_cache_has_forgotten_holds_no_more(tmp_path: Path, asks: str) -> None:
    arguments = (re.compile("a"),) if asks == "matching" else ("a", "a")[: 2 if asks == "importers" else 1]
    record = Record(frozenset(), frozenset(), {Question(asks, arguments): None})
    edited = project_of(tmp_path, {"a.py": "a\n"}).overlay({tmp_path / "a.py": "b\n"})
    assert not changes_of(edited).spare(record, edited)
