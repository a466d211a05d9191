"""The lines that changed since a git revision."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator

from perflint.config.errors import ConfigurationError
from perflint.engine.effects import Effects, Past
from perflint.engine.fingerprints import fingerprint
from perflint.findings import Report, Span
from perflint.source.repository import repository_of
from perflint.source.text import Source

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\(?:([0-7]{3})|(.))", re.DOTALL)
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
"""Settings under which git runs no program of the repository."""


class Changes:
    """The changed lines of the files of some repositories, in the working tree."""

    def __init__(self, revision: str, effects: Effects | None = None) -> None:
        """With `effects`, findings that the change causes on other lines count, too."""
        self._revision = revision
        self._effects = effects
        self._by_repository: dict[str, dict[str, list[range] | None]] = {}
        self._past: dict[str, Past] = {}

    def sift(self, source: Source, report: Report) -> None:
        """Leave the findings of a file that the change is about. Raises ConfigurationError."""
        kept = {id(finding) for finding in report.findings if self._touches(source, finding.span)}
        others = [finding for finding in report.findings if id(finding) not in kept]
        if others and self._effects is not None:
            known = self._effects.before(source, self._past_of(source.path))
            for finding in others:
                key = (finding.code, fingerprint(finding, source))
                known[key] -= 1
                if known[key] < 0:
                    kept.add(id(finding))
        report.unchanged += len(report.findings) - len(kept)
        report.findings = [finding for finding in report.findings if id(finding) in kept]

    def _past_of(self, path: str) -> Past:
        """The changed files of the repository of a file, as they were."""
        root = _root_of(path)
        if root not in self._past:
            self._past[root] = _past(root, _base(root, self._revision))
        return self._past[root]

    def _touches(self, source: Source, span: Span) -> bool:
        changed = self.of(source.path)
        first, last = span.line, span.end_line
        if source.notebook is not None:
            first, last = source.notebook.document_line(first), source.notebook.document_line(last)
        lines = range(first, last + 1)
        return changed is None or any(each.start < lines.stop and lines.start < each.stop for each in changed)

    def of(self, path: str) -> list[range] | None:
        """The changed lines of a file; None for all lines of a new one. Raises ConfigurationError."""
        real, root = os.path.realpath(path), _root_of(path)
        if root not in self._by_repository:
            self._by_repository[root] = dict(_changed(root, self._revision))
        return self._by_repository[root].get(os.path.relpath(real, root).replace(os.sep, "/"), [])


def _root_of(path: str) -> str:
    """The repository that a file is in. Raises ConfigurationError if it is in none."""
    root = repository_of(os.path.dirname(os.path.realpath(path)))
    if root is None:
        raise ConfigurationError(f"`--since` needs a git repository, and {path} is in none")
    return root


def _base(root: str, revision: str) -> str:
    """The commit at which the history left a revision. Raises ConfigurationError if git does not know it."""
    commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").strip()
    if not commit:
        raise ConfigurationError(f"git knows no revision `{revision}` in {root}", "`--since main`, `--since HEAD~3`")
    return (_git(root, "merge-base", commit.decode(), "HEAD").strip() or commit).decode()


def _past(root: str, base: str) -> Past:
    """The Python files that differ from a commit, as they were there."""
    fields = iter(_git(root, "diff", "--name-status", "--find-renames", "-z", base, "--").split(b"\0"))
    wanted: dict[str, str] = {}
    names: dict[str, str] = {}
    new: list[str] = []
    for status in fields:
        if not status:
            continue
        old = os.fsdecode(next(fields))
        now = os.fsdecode(next(fields)) if status[:1] in (b"R", b"C") else old
        before, after = os.path.join(root, old), os.path.join(root, now)
        if status[:1] == b"R":
            names[after] = before
        if status[:1] in (b"A", b"R", b"C"):
            new.append(after)
        if status[:1] in (b"M", b"D", b"R", b"T"):
            wanted[before] = old
    new += [os.path.join(root, name) for name, lines in _changed_files(root, base) if lines is None]
    texts = {path: _git(root, "show", f"{base}:{name}") for path, name in wanted.items() if name.endswith(".py")}
    return Past({**dict.fromkeys((path for path in new if path.endswith(".py")), b""), **texts}, names)


def _changed(root: str, revision: str) -> Iterator[tuple[str, list[range] | None]]:
    """The files that differ from the point where the history left a revision, with their changed lines."""
    yield from _changed_files(root, _base(root, revision))


def _changed_files(root: str, base: str) -> Iterator[tuple[str, list[range] | None]]:
    options = ("--no-color", "--no-ext-diff", "--no-textconv", "--unified=0", "--find-renames", "--src-prefix=a/")
    diff = _git(root, "diff", *options, "--dst-prefix=b/", base, "--")
    yield from parsed(diff)
    for name in _git(root, "ls-files", "--others", "--exclude-standard", "-z").split(b"\0"):
        if name:
            yield os.fsdecode(name), None


def _git(root: str, *arguments: str) -> bytes:
    """The output of a git command; empty if it fails. Raises ConfigurationError if there is no git."""
    try:
        ran = subprocess.run(["git", *_SAFE, "-C", root, *arguments], capture_output=True, check=False)
    except OSError as error:
        raise ConfigurationError(f"git cannot be run: {error.strerror or error}", "`--since` needs git") from None
    return ran.stdout if ran.returncode == 0 else b""


def parsed(diff: bytes) -> Iterator[tuple[str, list[range]]]:
    """The files of a diff without context and the new numbers of their changed lines."""
    ranges: list[range] = []
    lines = iter(diff.split(b"\n"))
    for line in lines:
        if line.startswith(b"+++ "):
            ranges = []
            name = _name(line[4:])
            if name is not None:
                yield name, ranges
        elif hunk := _HUNK.match(line):
            removed, start, added = (int(part) if part else 1 for part in hunk.groups())
            if added:
                ranges.append(range(start, start + added))
            # Lines of the files may look like lines of the diff.
            _skip(lines, removed + added)


def _skip(lines: Iterable[bytes], count: int) -> None:
    for line in lines if count else ():
        # "\ No newline at end of file" is not a line of a file.
        count -= not line.startswith(b"\\")
        if not count:
            return


def _name(quoted: bytes) -> str | None:
    """The path after "b/", which git quotes if it holds special characters; None for a deleted file."""
    name = quoted.rstrip(b"\t")
    if name.startswith(b'"') and name.endswith(b'"'):
        name = _ESCAPE.sub(_unescaped, name[1:-1])
    return os.fsdecode(name[2:]) if name.startswith(b"b/") else None


def _unescaped(found: re.Match[bytes]) -> bytes:
    if found[1]:
        return bytes([int(found[1], 8) & 0xFF])
    return _ESCAPES.get(found[2], found[2])
