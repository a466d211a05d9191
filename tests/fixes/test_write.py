"""Files are replaced whole, as they were dressed, and only while they are what was read."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from perflint.fixes import write
from perflint.fixes.write import FileChangedError, write_file


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_contents_are_replaced(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old\r\n")
    write_file(str(file), b"old\r\n", b"new\r\n")
    assert file.read_bytes() == b"new\r\n"
    assert leftovers(tmp_path) == ["a.py"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o777])
def test_mode_is_kept(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    file.chmod(mode)
    write_file(str(file), b"old", b"new")
    assert stat.S_IMODE(file.stat().st_mode) == mode


@pytest.mark.skipif(not hasattr(os, "chown") or os.geteuid() != 0, reason="only root may give files away")
def test_owner_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    os.chown(file, 12345, 54321)
    write_file(str(file), b"old", b"new")
    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 54321)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "a.py", tmp_path / "link.py"
    target.write_bytes(b"old")
    link.symlink_to(Path("real") / "a.py")
    write_file(str(link), b"old", b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"
    assert leftovers(tmp_path / "real") == ["a.py"]


def test_the_longest_name_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 252 + ".py")
    file.write_bytes(b"old")
    write_file(str(file), b"old", b"new")
    assert file.read_bytes() == b"new"


def test_other_hard_links_keep_the_old_text(tmp_path: Path) -> None:
    file, other = tmp_path / "a.py", tmp_path / "b.py"
    file.write_bytes(b"old")
    os.link(file, other)
    write_file(str(file), b"old", b"new")
    assert (file.read_bytes(), other.read_bytes()) == (b"new", b"old")


def test_a_changed_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"theirs")
    with pytest.raises(FileChangedError, match=r"a\.py changed while"):
        write_file(str(file), b"old", b"new")
    assert file.read_bytes() == b"theirs"
    assert leftovers(tmp_path) == ["a.py"]


def test_a_removed_file_stays_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")

    def dress(temporary: str, status: os.stat_result) -> None:
        file.unlink()

    monkeypatch.setattr(write, "_dress", dress)
    with pytest.raises(FileChangedError, match=r"a\.py was removed while"):
        write_file(str(file), b"old", b"new")
    assert leftovers(tmp_path) == []


def test_a_failed_write_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_file(str(file), b"old", b"new")
    assert file.read_bytes() == b"old"
    assert leftovers(tmp_path) == ["a.py"]


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    old, new, other, folder, link = (
        tmp_path / name
        for name in (
            ".perflint-0123456789abcdef.tmp",
            ".perflint-1123456789abcdef.tmp",
            ".perflint-notes.tmp",
            ".perflint-2123456789abcdef.tmp",
            ".perflint-3123456789abcdef.tmp",
        )
    )
    for path in (old, new, other):
        path.write_bytes(b"half of a fi")
    folder.mkdir()
    link.symlink_to("a.py")
    for path in (old, other, folder, file):
        os.utime(path, (0, 0))
    os.utime(link, (0, 0), follow_symlinks=False)
    write_file(str(file), b"old", b"new")
    assert leftovers(tmp_path) == sorted(path.name for path in (file, new, other, folder, link))


def test_a_failure_right_after_the_file_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    made = os.open

    def interrupted(*arguments: object, **options: object) -> int:
        made(*arguments, **options)  # type: ignore[arg-type, call-overload]
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_file(str(file), b"old", b"new")
    assert leftovers(tmp_path) == ["a.py"]


def test_a_read_only_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    # Root may write anything, so the mode alone shows nothing here.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(PermissionError, match=rf"\[Errno 13\] Permission denied: '{re.escape(str(file))}'"):
        write_file(str(file), b"old", b"new")
    assert file.read_bytes() == b"old"
