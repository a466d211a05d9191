"""The copy of a project: what is in it, and that nothing leads back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perflint.config.errors import ConfigurationError
from perflint.verify import workspace
from perflint.verify.workspace import Workspace, project_root

FILES = (
    "train.py", "pkg/__init__.py", "pkg/data.bin", "pkg/__pycache__/a.pyc", ".git/HEAD", ".venv/pyvenv.cfg",
    ".venv/lib/site.py", "env/conda-meta/x", "data/big.bin", "runs/last.pt", ".env", "empty/.mypy_cache/x",
)  # fmt: skip

needs_links = pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
pytestmark = needs_links


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_what_is_copied(project: Path) -> None:
    copy = Workspace(project, share=[project / "data"], leave_out=[project / "runs"])
    copy.renew({str(project / "train.py"): b"fixed"})
    assert names(copy.folder) == {"train.py", "pkg/__init__.py", "pkg/data.bin", ".env"}
    assert (copy.folder / "empty").is_dir() and copy.folder.name == "project"
    assert (copy.folder / "train.py").read_text() == "fixed"
    links = {name for name in os.listdir(copy.folder) if (copy.folder / name).is_symlink()}
    assert links == {".venv", "env", "data"}
    assert sorted(copy.shared) == [str(project / name) for name in (".venv", "data", "env")]
    assert (copy.folder / "data/big.bin").read_text() == "data/big.bin"
    assert copy.holds(str(project / "train.py"))
    assert not any(
        copy.holds(str(project / name)) for name in ("data/big.bin", ".venv/lib/site.py", "runs/last.pt", "no")
    )
    copy.close()
    assert not copy.folder.parent.exists() and names(project) == set(FILES)


def test_what_is_shared_is_there(project: Path) -> None:
    copy = Workspace(project, share=[project / ".git"])
    copy.renew({})
    assert (copy.folder / ".git").readlink() == project / ".git"
    copy.close()


def test_what_a_run_leaves_is_gone(project: Path) -> None:
    copy = Workspace(project)
    copy.renew({})
    (copy.folder / "pkg/data.bin").write_text("written over")
    (copy.folder / "new").mkdir()
    (copy.folder / "new" / "file").touch()
    (copy.output / "1.json").touch()
    assert copy.changed() == []
    copy.renew({})
    assert (copy.folder / "pkg/data.bin").read_text() == "pkg/data.bin"
    assert not (copy.folder / "new").exists() and not any(copy.output.iterdir())
    copy.close()


def test_no_change_is_written_through_a_link(project: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("one")
    (project / "link.py").symlink_to(tmp_path / "outside.py")
    copy = Workspace(project, [project / "pkg"])
    for path in ("link.py", "pkg/data.bin"):
        before = (project / path).read_bytes()
        with pytest.raises(ValueError, match=path):
            copy.renew({str(project / path): b"two"})
        assert (project / path).read_bytes() == before
    copy.close()


def test_changes_of_the_original_are_noticed(project: Path) -> None:
    copy = Workspace(project)
    (project / "runs/last.pt").write_text("the program knows the full path")
    (project / ".env").unlink()
    assert copy.changed() == [".env", "runs/last.pt"]
    copy.close()


def test_links(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("outside")
    for name, target in (
        ("inner.py", "train.py"),
        ("pkg/up.py", "../train.py"),
        ("full.py", project / "train.py"),
        ("away.py", outside / "a.py"),
        ("pkg/away", "../../outside"),
    ):
        (project / name).symlink_to(target)
    copy = Workspace(project)
    copy.renew({})
    for name in ("inner.py", "pkg/up.py", "full.py"):
        assert (copy.folder / name).resolve() == (copy.folder / "train.py").resolve(), name
    assert (copy.folder / "away.py").read_text() == (copy.folder / "pkg/away/a.py").read_text() == "outside"
    assert not copy.holds(str(project / "away.py")) and not copy.holds(str(project / "pkg/away/a.py"))
    copy.close()


def test_what_is_no_file_is_left_out(project: Path) -> None:
    os.mkfifo(project / "pipe")
    copy = Workspace(project)
    copy.renew({})
    assert not (copy.folder / "pipe").exists()
    copy.close()


def test_modes_stay(project: Path) -> None:
    (project / "train.py").chmod(0o755)
    copy = Workspace(project)
    copy.renew({str(project / "train.py"): b"x"})
    assert os.access(copy.folder / "train.py", os.X_OK)
    copy.close()


def test_a_project_that_is_too_large(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "LARGEST", 50)
    (project / "data/big.bin").write_text("x" * 100)
    with pytest.raises(ConfigurationError) as caught:
        Workspace(project)
    assert "too large to be copied for each run: data 0.0 GB" in caught.value.message
    assert "--share" in str(caught.value.help)
    Workspace(project, share=[project / "data", project / "pkg", project / "runs"]).close()


def test_the_top_of_a_project(tmp_path: Path) -> None:
    inner = tmp_path / "a/b/c"
    inner.mkdir(parents=True)
    assert project_root(inner) == inner
    (tmp_path / "a/b/pyproject.toml").touch()
    assert project_root(inner) == tmp_path / "a/b"
    (tmp_path / "a/.git").touch()
    assert project_root(inner) == tmp_path / "a"
