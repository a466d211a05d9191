"""The results about the files of one project that outlive the process.

They rest on the texts on the disk, on perflint itself and on the settings. A damaged or busy cache costs time and
changes nothing: results are then made anew.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from perflint.engine.cache.files import MISSING, Stamp, digest_of, stamp_of
from perflint.engine.cache.pickles import Damaged, dumped, loaded
from perflint.engine.cache.places import prepare
from perflint.engine.cache.store import DAMAGE, Result, Row, Store
from perflint.engine.cache.upkeep import bring_up
from perflint.findings import Report
from perflint.frozen import dataclass, replace
from perflint.semantics.blocks import Blocks
from perflint.semantics.callers.kept import summaries
from perflint.semantics.callers.summary import Summary
from perflint.semantics.project import Project
from perflint.semantics.texts import Question, Texts
from perflint.semantics.view import Record

_BLOCKS = b"blocks"
_TOGETHER = 200
"""Results that are written in one transaction."""
_NO_RECORD = Record(frozenset(), frozenset(), {})

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Handle:
    """A cache that was brought up to date, for other processes to open."""

    file: Path
    number: int


def opened(file: Path, project: Project) -> Cache | None:
    """The cache of a project, brought up to the present state of its files; None if there can be none."""
    cache: Cache | None = None
    try:
        prepare(file)
        store = Store(file)
        cache = Cache(store, project)
        bring_up(store, project)
        return cache
    except (OSError, *DAMAGE) as error:
        if cache is not None:
            cache.leave()
        _abandon(None, file, error)
        return None


def joined(handle: Handle, project: Project) -> Cache | None:
    """The cache that another process has brought up to date."""
    try:
        return Cache(Store(handle.file, handle.number), project)
    except (OSError, *DAMAGE):
        return None


def _summary_key(round: int) -> bytes:
    return b"summary %d" % round


class Cache:
    """The results about the files of one project; it is the store of the project's summaries."""

    def __init__(self, store: Store, project: Project) -> None:
        self._store: Store | None = store
        self._project = project
        self._began = time.time_ns()
        self._stamps: dict[str, Stamp | None] = {}
        self._same: dict[str, bool] = {}
        self._waiting: list[Result] = []
        summaries(project).store = self
        project.answers = self

    @property
    def handle(self) -> Handle | None:
        """Opens the cache in another process; None if the cache is damaged."""
        return None if self._store is None else Handle(self._store.file, self._store.number)

    def report(self, path: Path, key: bytes) -> Report | None:
        """The report of a file, made with the settings of a key; None if the file has changed meanwhile."""
        if not self._was_same(str(path)):
            return None
        data = self._guarded(lambda store: store.find(path, key))
        found = None if data is None else self._read(data)
        return found if isinstance(found, Report) else None

    def keep_report(self, path: Path, key: bytes, report: Report, record: Record, code: str) -> None:
        """Add the report of a file; `code` is the digest of its code."""
        content = dumped(report)
        # Comments may suppress findings.
        record = replace(record, texts=record.texts | {path})
        file = self._project.file_text(path)
        self._later(Result(path, key, content, record, code, None if file is None else file.outline))

    def find(self, path: Path, round: int) -> Summary | None:
        """The summary of a file in a round."""
        key = _summary_key(round)
        data = self._guarded(lambda store: store.find(path, key))
        found = None if data is None else self._read(data)
        if not isinstance(found, Summary):
            return None
        record = self._guarded(lambda store: store.record(path, key))
        return None if record is None else replace(found, record=record)

    def answer(self, question: Question) -> object:
        """The answer to a question about the texts of the project; None if it is not known."""
        return self._guarded(lambda store: store.answer(question))

    def importing(self, name: str) -> tuple[Path, ...] | None:
        """The files of the project that import a full name; None if the cache does not have the imports."""
        return self._guarded(lambda store: store.importing(name))

    def blocks(self, path: Path) -> Blocks | None:
        """The functions and classes of a file; None if they are not known, or if the file has changed meanwhile."""
        if not self._was_same(str(path)):
            return None
        data = self._guarded(lambda store: store.find(path, _BLOCKS))
        found = None if data is None else self._read(data)
        return found if isinstance(found, Blocks) else None

    def keep_blocks(self, blocks: Mapping[Path, Blocks]) -> None:
        """Add the functions and classes of files."""
        for path, found in blocks.items():
            self._later(Result(path, _BLOCKS, dumped(found), Record(frozenset(), frozenset({path}), {})))

    def keep(self, summary: Summary) -> None:
        """Add a summary."""
        try:
            content = dumped(replace(summary, record=_NO_RECORD))
        except RecursionError:
            return
        self._later(Result(summary.path, _summary_key(summary.round), content, summary.record))

    def flush(self) -> None:
        """Write what was added."""
        waiting, self._waiting = self._waiting, []
        self._same.clear()
        results = [each for each in waiting if self._is_still(each.record)]
        if results:
            self._guarded(lambda store: store.add(results, self._row))

    def close(self) -> None:
        """Write what was added, and close the file."""
        self.flush()
        self._keep_imports()
        self.leave()

    def leave(self) -> None:
        """Close the file as it is."""
        summaries(self._project).store = None
        self._project.answers = None
        if self._store is not None:
            self._store.close()
            self._store = None

    def _keep_imports(self) -> None:
        """Write the imports of all files, if they were read and none has changed since."""
        texts = self._project.__dict__.get("texts")
        if self._store is None or not isinstance(texts, Texts) or not texts.has_read_imports:
            return
        if not self._guarded(lambda store: store.has_imports) and all(
            self._was_same(str(file.path)) for file in texts.files
        ):
            self._guarded(lambda store: store.put_imports({str(file.path): file.bound for file in texts.files}))

    def _later(self, result: Result) -> None:
        self._waiting.append(result)
        if len(self._waiting) >= _TOGETHER and self._store is not None and not self._store.is_writing:
            self.flush()

    def _is_still(self, record: Record) -> bool:
        """True if no file of a record was written since the cache was brought up to date."""
        return all(self._is_same(str(path)) for paths in (record.code, record.texts) for path in paths)

    def _is_same(self, path: str) -> bool:
        known = self._same.get(path)
        if known is None:
            known = self._same[path] = self._was_same(path)
        return known

    def _was_same(self, path: str) -> bool:
        now, before = stamp_of(path), self._stamp(path)
        if before is not None:
            return now == before
        # The project has looked for the file.
        return self._project.is_file(Path(path)) == (now != MISSING) and max(now.written, now.changed) < self._began

    def _stamp(self, path: str) -> Stamp | None:
        """The stamp of a file in the state of the cache; None if it has none."""
        if path not in self._stamps:
            self._stamps[path] = self._guarded(lambda store: store.stamp(path))
        return self._stamps[path]

    def _row(self, path: Path) -> Row:
        """A file that no state has listed."""
        stamp = stamp_of(str(path))
        digest = digest_of(str(path), stamp)
        return Row(0, str(path), False, stamp, time.time_ns(), digest, None, None)

    def _read(self, data: bytes) -> object:
        try:
            return loaded(data)
        except Damaged:
            return None

    def _guarded(self, ask: Callable[[Store], _Answer]) -> _Answer | None:
        """The answer of the store; None if it is damaged or busy, after which it is left alone."""
        if self._store is None:
            return None
        try:
            return ask(self._store)
        except DAMAGE as error:
            _abandon(self._store, self._store.file, error)
            self._store = None
            return None


def _abandon(store: Store | None, file: Path, error: Exception) -> None:
    """Leave a cache file alone; the next run begins it anew, unless another process only takes too long."""
    if store is not None:
        store.close()
    if getattr(error, "sqlite_errorcode", None) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        with suppress(OSError):
            file.unlink()
