"""The project around a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from perflint.config.settings import Settings
from perflint.engine import projects
from perflint.engine.projects import Projects, root_of


def put(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if name.endswith(".git") else path.touch()


def listed(folder: Path, name: str) -> set[str]:
    """The files of the project of a file, relative to a folder."""
    return {path.relative_to(folder).as_posix() for path in Projects(Settings()).of(folder / name).files}


@pytest.mark.parametrize(
    ("entries", "root"),
    [
        ((".git", "a/setup.py", "a/b/x.py"), "."),
        (("pyproject.toml", "a/setup.py", "a/b/x.py"), "a"),
        (("a/pyproject.toml", "a/b/x.py"), "a"),
        (("a/setup.cfg", "a/b/x.py"), "a"),
    ],
)
def test_the_repository_decides_before_the_nearest_marker(tmp_path: Path, entries: Iterable[str], root: str) -> None:
    put(tmp_path, *entries)
    assert root_of(tmp_path / "a" / "b") == (tmp_path / root).resolve()


def test_with_a_marker_all_files_below_belong_to_it(tmp_path: Path) -> None:
    put(tmp_path, "setup.py", "train.py", "net/__init__.py", "net/ops.py", "tools/deep/x.py", ".venv/y.py", "a.txt")
    whole = {"setup.py", "train.py", "net/__init__.py", "net/ops.py", "tools/deep/x.py"}
    assert listed(tmp_path, "net/ops.py") == listed(tmp_path, "train.py") == whole


def test_a_sign_makes_a_root_if_there_is_no_marker(tmp_path: Path) -> None:
    put(tmp_path, "a/LICENSE", "a/train.py", "a/net/requirements.txt", "a/net/deep/x.py", "other/y.py")
    assert root_of(tmp_path / "a") == tmp_path / "a"
    assert root_of(tmp_path / "a" / "net" / "deep") == tmp_path / "a" / "net"
    put(tmp_path, "a/setup.py")
    assert root_of(tmp_path / "a" / "net" / "deep") == tmp_path / "a"


def test_without_a_marker_a_script_belongs_to_its_folder_and_the_code_in_it(tmp_path: Path) -> None:
    put(tmp_path, "train.py", "eval.py", "net/__init__.py", "net/deep/ops.py", "data/x.py", "text/deep/y.py")
    whole = {"train.py", "eval.py", "net/__init__.py", "net/deep/ops.py", "data/x.py"}
    assert listed(tmp_path, "train.py") == listed(tmp_path, "net/deep/ops.py") == listed(tmp_path, "data/x.py") == whole


def test_without_a_marker_or_scripts_a_module_belongs_to_its_outermost_package(tmp_path: Path) -> None:
    put(tmp_path, "net/__init__.py", "net/deep/__init__.py", "net/deep/ops.py", "other/__init__.py")
    assert listed(tmp_path, "net/deep/ops.py") == {"net/__init__.py", "net/deep/__init__.py", "net/deep/ops.py"}


@pytest.mark.parametrize("shared", ["home", "temporary"])
def test_a_folder_of_unrelated_things_is_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: str
) -> None:
    put(tmp_path, "notes.py", ".gitignore", "a/train.py", "b/other.py")
    assert listed(tmp_path, "a/train.py") == {"a/train.py", "b/other.py", "notes.py"}
    if shared == "home":
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("USERPROFILE", str(tmp_path))
    else:
        tmp_path.chmod(0o1777)
    assert listed(tmp_path, "a/train.py") == {"a/train.py"}


def test_installed_packages_are_projects_of_their_own(tmp_path: Path) -> None:
    put(tmp_path, "six.py", "LICENSE", "net/__init__.py", "net/ops.py", "net-1.0.dist-info/METADATA")
    assert listed(tmp_path, "net/ops.py") == {"net/__init__.py", "net/ops.py"}


def test_a_project_is_found_once(tmp_path: Path) -> None:
    put(tmp_path, "setup.py", "a/x.py", "b/y.py")
    found = Projects(Settings())
    assert found.of(tmp_path / "a" / "x.py") is found.of(tmp_path / "b" / "y.py")


def test_a_project_with_too_many_files_is_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "_MOST_FILES", 3)
    put(tmp_path, "setup.py", "a.py", "b.py", "c.py")
    assert not Projects(Settings()).of(tmp_path / "a.py").is_whole
    put(tmp_path / "few", "setup.py", "a.py")
    assert Projects(Settings()).of(tmp_path / "few" / "a.py").is_whole


def test_scripts_are_looked_for_in_a_few_folders_above(tmp_path: Path) -> None:
    deep = [f"{'a/' * depth}x{depth}.py" for depth in range(1, 9)]
    put(tmp_path, *deep)
    (tmp_path / "a" / "a.py").touch()
    found = listed(tmp_path, deep[-1])
    assert deep[-1] in found and deep[3] in found and deep[0] not in found


def test_a_folder_that_does_not_exist_and_a_user_without_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    put(tmp_path, "a/x.py", "a/y.py")
    assert listed(tmp_path, "a/b/none.py") == {"a/x.py", "a/y.py"}
    monkeypatch.setattr(Path, "home", homeless)
    assert listed(tmp_path, "a/x.py") == {"a/x.py", "a/y.py"}


def test_a_folder_that_has_gone(tmp_path: Path) -> None:
    assert listed(tmp_path, "gone/x.py") == set()
