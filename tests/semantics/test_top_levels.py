"""Checks share the run of the top level of an imported module, if it follows from the texts alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.semantics.interpreter.top_levels import top_levels
from perflint.semantics.model import CallsOf, Model
from perflint.semantics.project import Project
from perflint.source.text import Source

USER = "from tables import TABLE\n\n\ndef f():\n    return TABLE['a']\n"
PLAIN = "def made(size):\n    return {'a': size}\n\n\nTABLE = dict(made(1))\n"
GROWS = "class Table:\n    def __init__(self):\n        self.a = 1\n\n\nobject = Table()\nTABLE = {'a': object.a}\n"
CIRCULAR = "from other import PART\n\nTABLE = dict(a=PART)\n"
OTHER = "from tables import TABLE\n\nPART = len(TABLE)\n"


def checked(tmp_path: Path, tables: str, *users: str) -> tuple[Project, list[Model]]:
    """The models of files that use a table, all of one project."""
    texts = {"tables.py": tables, "other.py": OTHER, **{f"user{n}.py": text for n, text in enumerate(users)}}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    project = Project(sorted(tmp_path.glob("*.py")))
    models = []
    for path in sorted(tmp_path.glob("user*.py")):
        model = Model(Source(str(path), path.read_text()), project, CallsOf.FILE)
        model.infer()
        models.append(model)
    return project, models


def made(project: Project, tmp_path: Path) -> object:
    """The shared result for the table; None if each check makes its own."""
    return top_levels(project)._known[tmp_path / "tables.py"]


def test_two_checks_share_a_table(tmp_path: Path) -> None:
    project, models = checked(tmp_path, PLAIN, USER, USER)
    assert made(project, tmp_path) is not None
    names = [model.view.state(model.view.loaded("tables")).names for model in models]
    assert names[0] == names[1] and names[0] is not names[1]
    assert models[0].steps == models[1].steps
    assert all(tmp_path / "tables.py" in model.record.code for model in models)


@pytest.mark.parametrize("tables", [GROWS, CIRCULAR], ids=["objects of the project", "a circle"])
def test_other_top_levels_run_in_each_check(tmp_path: Path, tables: str) -> None:
    project, models = checked(tmp_path, tables, USER, USER)
    assert made(project, tmp_path) is None
    assert all(model.view.state(model.view.loaded("tables")).is_run for model in models)


def after_edit(project: Project, model: Model, name: str, text: str) -> tuple[Project, Model]:
    """An overlay with another text for a file, and the model of the same source there."""
    other = project.overlay({model.module.path.with_name(name): text})
    again = Model(model.source, other, CallsOf.FILE)
    again.infer()
    return other, again


def table(model: Model) -> object:
    names = model.view.state(model.view.loaded("tables")).names
    assert names is not None
    return names["TABLE"]


def test_an_overlay_shares_a_table_that_its_edit_does_not_touch(tmp_path: Path) -> None:
    project, (model,) = checked(tmp_path, PLAIN, USER)
    other, again = after_edit(project, model, "other.py", "PART = 2\n")
    assert made(other, tmp_path) is made(project, tmp_path) is not None
    assert table(again) == table(model) and again.steps == model.steps


def test_an_overlay_runs_a_table_that_uses_the_edited_file(tmp_path: Path) -> None:
    uses = "from parts import made\n\nTABLE = dict(a=made())\n"
    (tmp_path / "parts.py").write_text("def made():\n    return 1\n")
    project, (model,) = checked(tmp_path, uses, USER)
    assert made(project, tmp_path) is not None
    other, again = after_edit(project, model, "parts.py", "def made():\n    return 'text'\n")
    assert made(other, tmp_path) is not made(project, tmp_path)
    assert table(again) != table(model)
    other, again = after_edit(project, model, "parts.py", "def made():\n    return 1  # a number\n")
    assert made(other, tmp_path) is made(project, tmp_path)
    assert table(again) == table(model)


def test_an_overlay_runs_the_changed_table(tmp_path: Path) -> None:
    project, (model,) = checked(tmp_path, PLAIN, USER)
    other = project.overlay({tmp_path / "tables.py": "TABLE = dict(b=None)\n"})
    again = Model(model.source, other, CallsOf.FILE)
    again.infer()
    names = [each.view.state(each.view.loaded("tables")).names for each in (model, again)]
    assert names[0] is not None and names[1] is not None and names[0]["TABLE"] != names[1]["TABLE"]
