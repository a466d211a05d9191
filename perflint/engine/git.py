"""Questions to git about a repository that may be hostile: its settings name programs, and none of them may run.

Only commands that read objects and the index run in the repository. `git diff` does not: it runs the filters that the
repository names on files of the working tree. Files are compared in a folder of their own.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping

from perflint.config.errors import ConfigurationError
from perflint.frozen import dataclass
from perflint.source.files import is_below

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_LONGEST = 300
"""Seconds for a command of git, which waits for ever if the repository has pipes where git reads files."""
_CHECKED = frozenset({"", ".py", ".pyi", ".pyw", ".ipynb"})
"""Suffixes of files that can be checked."""
_SETTINGS = ("--no-pager", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_ALONE = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none", "GIT_TERMINAL_PROMPT": "0"}
"""Git neither writes the index nor fetches objects. Before 2.45 it begins to fetch, and ends at the protocol."""
_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--text", "--raw", "--patch", "--unified=0", "--find-renames")
_FILE = (b"100644", b"100755")
"""Modes of files, but for links."""


class Repository:
    """A repository, of which only objects and the index are read."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._git = _program(root)

    def base(self, revision: str) -> str:
        """The commit at which the history left a revision. Raises ConfigurationError for an unknown one."""
        commit = self._asked("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if not _COMMIT.fullmatch(commit):
            message = f"git knows no revision `{revision}` in {self._root}"
            raise ConfigurationError(message, "`--since main`, `--since HEAD~3`")
        return self._asked("merge-base", commit, "HEAD") or commit

    def committed(self, commit: str) -> dict[str, str]:
        """The blobs of the files of a commit. Raises ConfigurationError."""
        entries = _entries(self._run("ls-tree", "-r", "-z", commit))
        return {name: blob.decode() for (mode, _, blob), name in entries if mode in _FILE}

    def tracked(self) -> dict[str, bool]:
        """The files of the index; True for those that a sparse checkout leaves out. Raises ConfigurationError."""
        entries = _entries(self._run("ls-files", "--stage", "-t", "-z"))
        return {name: tag == b"S" for (tag, mode, *_), name in entries if mode in _FILE}

    def untracked(self) -> list[str]:
        """The files that are neither tracked nor ignored. Raises ConfigurationError."""
        return _names(self._run("ls-files", "--others", "--exclude-standard", "-z"))

    def content(self, name: str) -> bytes | None:
        """The bytes of a file of the working tree; None if there is none."""
        path = os.path.join(self._root, name)
        try:
            if stat.S_ISREG(os.lstat(path).st_mode):
                with open(path, "rb") as file:
                    return file.read()
        except OSError:
            # It was deleted, or cannot be read: the check says so.
            pass
        return None

    def texts(self, blobs: Mapping[str, str]) -> dict[str, bytes]:
        """The bytes of blobs. Raises ConfigurationError if one is missing, as in a partial clone."""
        data = self._run("cat-file", "--batch", given="".join(f"{blob}\n" for blob in blobs.values()).encode())
        found: dict[str, bytes] = {}
        at = 0
        for name in blobs:
            end = data.find(b"\n", at)
            head = data[at:end].split()
            if head[1:2] != [b"blob"]:
                message = f"git has no text of {name} in {self._root}: the clone is a partial one, or damaged"
                raise ConfigurationError(message, "`git diff REV` fetches it; `--since` fetches nothing")
            at = end + 1 + int(head[2])
            found[name] = data[end + 1 : at]
            at += 1
        return found

    def _asked(self, *arguments: str) -> str:
        """The answer of git; empty if it has none."""
        return self._ran(*arguments).stdout.decode().strip()

    def _run(self, *arguments: str, given: bytes = b"") -> bytes:
        """The output of a command. Raises ConfigurationError if it fails."""
        ran = self._ran(*arguments, given=given)
        if ran.returncode:
            reason = os.fsdecode(ran.stderr).strip().partition("\n")[0]
            raise ConfigurationError(f"`git {arguments[0]}` failed in {self._root}: {reason}", "`git fsck` says more")
        return ran.stdout

    def _ran(self, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [self._git, *_SETTINGS, "-C", self._root, *arguments]
        try:
            return subprocess.run(command, input=given, capture_output=True, env=os.environ | _ALONE, timeout=_LONGEST)
        except subprocess.TimeoutExpired:
            message = f"`git {arguments[0]}` did not end in {_LONGEST} seconds in {self._root}"
            raise ConfigurationError(message, "a named pipe in the place of a `.gitignore` makes git wait") from None

    def compared(self, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Comparison:
        """The difference of files in two states. Raises ConfigurationError."""
        names = sorted({*old, *new})
        # Files get numbers for names, because names of a foreign commit may lead anywhere. Equal last names get
        # equal numbers, by which git recognizes files that were moved.
        last = {name: str(at) for at, name in enumerate(dict.fromkeys(map(os.path.basename, names)))}
        places = {name: f"{at}/{last[os.path.basename(name)]}" for at, name in enumerate(names)}
        with tempfile.TemporaryDirectory(prefix="perflint-") as folder:
            for state, texts in (("old", old), ("new", new)):
                os.mkdir(os.path.join(folder, state))
                for name, text in texts.items():
                    path = os.path.join(folder, state, places[name])
                    os.mkdir(os.path.dirname(path))
                    with open(path, "wb") as file:
                        file.write(text)
            command = [self._git, "--no-pager", "diff", "--no-index", *_DIFF, "--src-prefix=", "--dst-prefix=", "--"]
            ran = subprocess.run([*command, "old", "new"], cwd=folder, env=_bare(folder), capture_output=True)
        if ran.returncode not in (0, 1):
            reason = os.fsdecode(ran.stderr).strip().partition("\n")[0]
            raise ConfigurationError(f"`git diff --no-index` failed: {reason}")
        return _comparison(ran.stdout, {place: name for name, place in places.items()})


@dataclass(frozen=True, slots=True)
class Comparison:
    """The new numbers of changed lines by file, the new files, and the old names of renamed ones by their new names."""

    lines: dict[str, list[range] | None]
    new: list[str]
    renamed: dict[str, str]


def can_be_checked(name: str) -> bool:
    """True for a file whose name may be that of Python code or a notebook."""
    return os.path.splitext(name)[1].lower() in _CHECKED


def is_same(text: bytes, blob: str) -> bool:
    """True if a text is that of a blob."""
    digest = hashlib.sha1 if len(blob) == 40 else hashlib.sha256
    return digest(b"blob %d\0" % len(text) + text).hexdigest() == blob


def _bare(folder: str) -> dict[str, str]:
    """The environment of a git that works in a folder of its own and reads no settings of the user or the machine.

    These change what a diff says: more lines around a change, another order or encoding of files.
    """
    given = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    top = os.path.dirname(os.path.realpath(folder))
    given |= {"HOME": folder, "XDG_CONFIG_HOME": folder, "GIT_CEILING_DIRECTORIES": top}
    return given | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1"}


def _program(root: str) -> str:
    """The path of git; never of a program in the repository or the working directory. Raises ConfigurationError."""
    foreign = [os.path.realpath(folder) for folder in (root, os.curdir)]
    for folder in os.get_exec_path():
        path = os.path.join(folder, "git.exe" if os.name == "nt" else "git")
        real = os.path.realpath(folder)
        is_foreign = any(is_below(real, each) for each in foreign)
        if os.path.isabs(folder) and not is_foreign and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise ConfigurationError("git cannot be run: no folder of PATH has it", "`--since` needs git")


def _entries(listed: bytes) -> Iterator[tuple[list[bytes], str]]:
    """The fields before the tab and the name of each entry of a list."""
    for name in _names(listed):
        about, _, path = name.partition("\t")
        yield about.encode().split(), path


def _names(listed: bytes) -> list[str]:
    return [os.fsdecode(name) for name in listed.split(b"\0") if name]


def _comparison(diff: bytes, names: Mapping[str, str]) -> Comparison:
    """A diff without context that begins with the raw list of files."""
    found = Comparison({}, [], {})

    def named(path: bytes) -> str:
        return names[path.decode().partition("/")[2]]

    lines = iter(diff.split(b"\n"))
    for line in lines:
        if line.startswith(b":"):
            status, *paths = line.split(b"\t")
            if status.endswith(b" A"):
                found.new.append(named(paths[0]))
            if len(paths) == 2:
                found.new.append(named(paths[1]))
                found.renamed[named(paths[1])] = named(paths[0])
        elif line.startswith(b"+++ new/"):
            ranges: list[range] = []
            found.lines[named(line[4:])] = ranges
        elif hunk := _HUNK.match(line):
            removed, start, added = (int(part) if part else 1 for part in hunk.groups())
            if added:
                ranges.append(range(start, start + added))
            # Lines of the files may look like lines of the diff.
            _skip(lines, removed + added)
    return found


def _skip(lines: Iterable[bytes], count: int) -> None:
    for line in lines if count else ():
        # "\ No newline at end of file" is not a line of a file.
        count -= not line.startswith(b"\\")
        if not count:
            return
