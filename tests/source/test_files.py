"""Which files are found."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from perflint.config.settings import DEFAULT_EXCLUDES, Settings
from perflint.source.files import discover


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(*names: str) -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def found(*paths: str, force_exclude: bool = False, **settings: tuple[str, ...]) -> list[str]:
    return discover(paths, Settings(**settings), force_exclude).files  # type: ignore[arg-type]


def test_folders_are_searched_in_order_of_names(tree: Path) -> None:
    make("p/b.py", "p/a/z.py", "p/a/__init__.py", "p/c/d/e.py", "p/B.py", "top.py")
    assert found("p") == ["p/B.py", "p/a/__init__.py", "p/a/z.py", "p/b.py", "p/c/d/e.py"]
    assert found(".") == ["p/B.py", "p/a/__init__.py", "p/a/z.py", "p/b.py", "p/c/d/e.py", "top.py"]


def test_only_python_files(tree: Path) -> None:
    make("p/a.py", "p/a.pyi", "p/a.ipynb", "p/a.txt", "p/py", "p/.hidden.py", "p/.hidden/b.py")
    assert found("p") == ["p/.hidden/b.py", "p/.hidden.py", "p/a.py"]


def test_paths_are_shown_as_given(tree: Path) -> None:
    make("p/a.py")
    assert found("./p") == ["./p/a.py"]
    assert found("p/") == ["p/a.py"]
    assert found("../" + tree.name) == [f"../{tree.name}/p/a.py"]
    assert found(str(tree)) == [str(tree / "p" / "a.py")]


def test_a_named_file_is_checked_whatever_it_is(tree: Path) -> None:
    make("script", "types.pyi", "build/a.py")
    Path(".gitignore").write_text("script\n")
    assert found("script", "types.pyi", "build/a.py") == ["script", "types.pyi", "build/a.py"]


def test_every_file_once(tree: Path) -> None:
    make("p/a.py", "p/b.py")
    assert found("p/b.py", "p", str(tree / "p" / "a.py"), "./p") == ["p/b.py", "p/a.py"]


@pytest.mark.parametrize("name", DEFAULT_EXCLUDES)
def test_default_excludes(tree: Path, name: str) -> None:
    make("p/a.py", f"p/{name}/b.py", f"p/deep/{name}/c.py")
    assert found("p") == ["p/a.py"]
    # Whoever names such a folder means it.
    assert found(f"p/{name}") == [f"p/{name}/b.py"]


def test_excludes_of_settings(tree: Path) -> None:
    make("src/a.py", "src/gen/b.py", "src/gen_c.py", "docs/d.py", "build/e.py")
    assert found(".", exclude=("docs", "/src/gen")) == ["build/e.py", "src/a.py", "src/gen_c.py"]
    assert found("src", exclude=("src/gen*",)) == ["src/a.py"]
    assert found(".", exclude=("*.py", "!a.py")) == ["src/a.py"]


def test_excludes_outside_of_the_root_match_by_name(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "gen").mkdir()
    for name in ("a.py", "gen/b.py"):
        (other / name).write_text("")
    assert found(str(other), exclude=("gen",)) == [str(other / "a.py")]
    assert found(str(other), exclude=("/gen",)) == [str(other / "a.py"), str(other / "gen" / "b.py")]


def test_gitignore_files(tree: Path) -> None:
    make("a.py", "b_gen.py", "p/c.py", "p/d_gen.py", "p/keep_gen.py", "out/e.py", "p/out/f.py")
    Path(".gitignore").write_text("*_gen.py\n/out/\n")
    Path("p/.gitignore").write_text("!keep_gen.py\nc.py\n")
    assert found(".") == ["a.py", "p/keep_gen.py", "p/out/f.py"]


def test_gitignore_files_above_count_within_a_repository(tree: Path) -> None:
    make("repo/.git/HEAD", "repo/.git/info/exclude", "repo/p/q/a.py", "repo/p/q/b.py", "repo/p/q/c.py", "repo/p/q/d.py")
    Path(".gitignore").write_text("d.py\n")
    Path("repo/.gitignore").write_text("p/q/a.py\n")
    Path("repo/p/.gitignore").write_text("b.py\n")
    Path("repo/.git/info/exclude").write_text("c.py\n")
    assert found("repo/p/q") == ["repo/p/q/d.py"]


def test_nothing_below_an_ignored_folder_comes_back(tree: Path) -> None:
    make("p/out/keep.py", "p/a.py")
    Path("p/.gitignore").write_text("out/\n!out/keep.py\n")
    assert found("p") == ["p/a.py"]


def test_force_exclude_applies_to_what_is_named(tree: Path) -> None:
    make("a.py", "build/b.py", "ignored/c.py", "p/d_gen.py", "p/e.py")
    Path(".gitignore").write_text("ignored/\n*_gen.py\n")
    named = ("a.py", "build/b.py", "build", "ignored/c.py", "p/d_gen.py", "p")
    assert found(*named) == ["a.py", "build/b.py", "ignored/c.py", "p/d_gen.py", "p/e.py"]
    assert found(*named, force_exclude=True) == ["a.py", "p/e.py"]


def test_force_exclude_looks_above_a_repository(tree: Path) -> None:
    make("build/repo/.git/HEAD", "build/repo/a.py")
    assert found("build/repo/a.py", force_exclude=True) == []
    assert found("build/repo/a.py", force_exclude=True, exclude=()) == ["build/repo/a.py"]


def test_a_missing_path_is_a_problem_and_the_rest_is_found(tree: Path) -> None:
    make("a.py")
    discovery = discover(["none.py", "a.py", "no/folder"], Settings())
    assert discovery.files == ["a.py"]
    assert [(p.path, p.message) for p in discovery.problems] == [
        ("none.py", "no such file or folder"),
        ("no/folder", "no such file or folder"),
    ]


def test_an_empty_folder_is_told(tree: Path) -> None:
    make("p/readme.txt", "q/a.py")
    discovery = discover(["p", "q"], Settings())
    assert (discovery.files, discovery.empty, discovery.problems) == (["q/a.py"], ["p"], [])


def test_a_folder_that_cannot_be_read(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make("p/a.py", "p/locked/b.py", "p/z.py")
    scandir = os.scandir

    def guarded(path: str) -> object:
        if path.endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    discovery = discover(["p"], Settings())
    assert discovery.files == ["p/a.py", "p/z.py"]
    assert [(p.path, p.message) for p in discovery.problems] == [
        ("p/locked", "cannot search the folder: Permission denied")
    ]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_permissions_for_real(tree: Path) -> None:
    make("p/locked/b.py")
    Path("p/locked").chmod(0)
    try:
        assert [p.path for p in discover(["p"], Settings()).problems] == ["p/locked"]
    finally:
        Path("p/locked").chmod(0o700)


def test_links(tree: Path) -> None:
    make("p/a.py", "elsewhere/b.py")
    Path("p/file.py").symlink_to(tree / "elsewhere" / "b.py")
    Path("p/folder").symlink_to(tree / "elsewhere")
    Path("p/loop").symlink_to(tree / "p")
    Path("p/broken.py").symlink_to(tree / "nothing.py")
    assert found("p") == ["p/a.py", "p/file.py"]
    assert found("p", "elsewhere") == ["p/a.py", "p/file.py"]


def test_a_folder_named_like_a_file(tree: Path) -> None:
    make("p/odd.py/a.py")
    assert found("p") == ["p/odd.py/a.py"]


def test_a_link_in_a_circle_leads_nowhere(tree: Path) -> None:
    make("p/b.py")
    Path("p/a.py").symlink_to("a.py")
    discovery = discover(["p"], Settings())
    assert (discovery.files, discovery.problems) == (["p/b.py"], [])


def test_a_link_into_a_folder_that_may_not_be_entered_is_told_of_when_it_is_read(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make("p/b.py")
    Path("p/a.py").symlink_to("b.py")

    class Locked:
        """An entry whose link cannot be followed; real ones are not to be changed."""

        def __init__(self, entry: os.DirEntry[str]) -> None:
            self.name = entry.name
            self.is_dir, self.is_symlink = entry.is_dir, entry.is_symlink

        def is_file(self) -> bool:
            raise PermissionError(13, "Permission denied")

    class Entries:
        def __init__(self, path: str) -> None:
            self.entries = [Locked(entry) for entry in scandir(path)]

        def __enter__(self) -> list[Locked]:
            return self.entries

        def __exit__(self, *error: object) -> None:
            return None

    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", Entries)
    assert found("p") == ["p/a.py", "p/b.py"]


@pytest.mark.skipif(os.name == "nt", reason="needs long paths, and `rm`")
def test_folders_nested_deeper_than_the_stack(tree: Path) -> None:
    make("p/a.py", "p/z.py")
    handle = os.open("p", os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(os.open("deepest.py", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    os.close(handle)
    try:
        assert [Path(file).name for file in found("p")] == ["a.py", "deepest.py", "z.py"]
    finally:
        # Python's own way to remove folders recurses, too.
        subprocess.run(["rm", "-r", "p"], check=True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_pipes_are_not_read(tree: Path) -> None:
    make("p/a.py", "p/.git/info/x")
    for name in ("p/.gitignore", "p/.git/info/exclude", "p/pipe.py"):
        os.mkfifo(name)
    assert found("p") == ["p/a.py"]


def test_an_ignore_file_without_an_end(tree: Path) -> None:
    make("p/a.py")
    Path("p/.gitignore").symlink_to("/dev/zero")
    assert found("p") == ["p/a.py"]
