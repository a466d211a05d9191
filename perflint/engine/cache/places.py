"""The place of the cache, and the version of perflint that wrote it."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from perflint import __version__
from perflint.config.disk import regular_contents
from perflint.config.errors import ConfigurationError

_PACKAGE = Path(__file__).parent.parent.parent
_CODE = (".py", ".toml", ".pyi")
_UNUSED = 30 * 24 * 3600
"""Seconds after which the files of a project, or of another version of perflint, are removed."""
_TRIES = 3
"""Attempts to remove a folder that other processes use; in the end, their results stay."""
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of perflint. It may be removed.\n"
"""https://bford.info/cachedir/: backups leave such folders out."""
_OWN = re.compile(r"CACHEDIR\.TAG|\.gitignore|[\w.+]+-[0-9a-f]{16}")
"""The names in a cache, also where its tag is not yet written, or is removed already."""
_IGNORES = "*\n"


def user_folder(named: str | None = None) -> Path | None:
    """The folder of the cache, which an option may name; None if PERFLINT_NO_CACHE is set.

    Raises ConfigurationError for one that holds something else: caches are removed as a whole.
    """
    if os.environ.get("PERFLINT_NO_CACHE"):
        return None
    folder = Path(named) if named else default_folder()
    if not _may_be_own(folder):
        raise ConfigurationError(
            f"{folder} cannot be the cache: it is not empty", f"name a folder for it alone: {folder / 'perflint'}"
        )
    return folder


def default_folder() -> Path:
    """The folder of the cache, if the user names none: PERFLINT_CACHE_DIR, or the usual place of the platform."""
    named = os.environ.get("PERFLINT_CACHE_DIR")
    if named:
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_cache_dir("perflint", appauthor=False))


def file_of(folder: Path, root: Path, settings: str) -> Path:
    """The file for the results about a project under the settings that all of its results depend on.

    The working directory counts, too: tests are recognized by the folders below it.
    """
    return folder / _version() / f"{_name(root)}-{_digest(f'{os.getcwd()}{chr(0)}{settings}')}.sqlite"


def _name(root: Path) -> str:
    """The beginning of the names of all files about a project."""
    return f"{root.name[:40] or 'root'}-{_digest(str(root))}"


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def prepare(file: Path) -> None:
    """Make the folder of a cache file, and remove files of the cache that were not used for a month.

    Raises OSError.
    """
    folder = file.parent.parent
    file.parent.mkdir(parents=True, exist_ok=True)
    tag = folder / "CACHEDIR.TAG"
    if not tag.exists():
        for path, text in ((tag, _TAG), (folder / ".gitignore", _IGNORES)):
            # Another process may be faster. Nothing that is there is written over.
            with suppress(FileExistsError), open(path, "x", encoding="ascii") as stream:
                stream.write(text)
    for each in _old(folder):
        each.unlink(missing_ok=True)


def clean_project(folder: Path, root: Path) -> int:
    """Remove the files of the cache about one project, and count them. Raises OSError."""
    if not _is_own(folder):
        return 0
    found = [each for each in _files(folder) if each.name.startswith(f"{_name(root)}-")]
    for each in found:
        each.unlink(missing_ok=True)
    return sum(each.suffix == ".sqlite" for each in found)


def clean(folder: Path) -> int:
    """Remove the cache, and count its files. Only folders that perflint made are removed. Raises OSError."""
    # Few runs clean the cache.
    import shutil

    if not _is_own(folder):
        return 0
    files = sum(each.suffix == ".sqlite" for each in _files(folder))
    for _ in range(_TRIES):
        try:
            shutil.rmtree(folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise
            # Another process writes or removes results meanwhile.
            continue
        break
    return files


def _is_own(folder: Path) -> bool:
    tag = folder / "CACHEDIR.TAG"
    return tag.is_file() and tag.read_bytes() == _TAG.encode()


def _may_be_own(folder: Path) -> bool:
    """True if a folder is a cache, if it is empty or not there, or if only a part of a cache is there."""
    try:
        if _is_own(folder):
            return True
        names = set(os.listdir(folder))
        ignores = ".gitignore" not in names or regular_contents(folder / ".gitignore") == _IGNORES.encode()
    except OSError:
        return True
    return ignores and all(map(_OWN.fullmatch, names))


def _files(folder: Path) -> Iterator[Path]:
    """The files of a cache. In a cache of a project, a link may lead to files of others."""
    for version in folder.iterdir():
        if _OWN.fullmatch(version.name) and version.is_dir() and not version.is_symlink():
            yield from version.glob("*.sqlite*")


def _old(folder: Path) -> Iterator[Path]:
    oldest = time.time() - _UNUSED
    for each in _files(folder):
        try:
            if each.stat().st_mtime < oldest:
                yield each
        except OSError:
            # Another process has removed it.
            continue


def _version() -> str:
    """The version of perflint and Python, and of perflint's files, which change in a development install."""
    digest = hashlib.blake2b(f"{sys.implementation.cache_tag} {sys.version_info[:3]}".encode(), digest_size=8)
    for name, written, size in sorted(_stamps(str(_PACKAGE))):
        digest.update(f"{name}\0{written}\0{size}\n".encode())
    return f"{__version__}-{digest.hexdigest()}"


def _stamps(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _stamps(entry.path)
            elif entry.name.endswith(_CODE):
                status = entry.stat()
                yield entry.path, status.st_mtime_ns, status.st_size
