"""One file of the cache: a database of the results about one project.

It describes one state of the project. Who opens it brings it up to the present state, and so removes the results
that an edit has touched (`brought_up`). A state has a number, and results of an older state are not added.
"""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from perflint.engine.cache.files import Stamp
from perflint.engine.cache.pickles import unpacked
from perflint.frozen import dataclass
from perflint.semantics.texts import Question
from perflint.semantics.view import Record

_PATIENCE = 10.0
"""Seconds to wait for another process that writes."""
_MOST_VALUES = 500
"""Values in one statement."""
_LARGEST = 2 << 30
"""Bytes of a cache file, from which on it is begun anew."""
_TABLES = """
CREATE TABLE state (number INTEGER NOT NULL, shape TEXT NOT NULL, imports INTEGER NOT NULL);
CREATE TABLE file (
    id INTEGER PRIMARY KEY, path TEXT UNIQUE NOT NULL, listed INTEGER NOT NULL,
    written INTEGER NOT NULL, changed INTEGER NOT NULL, size INTEGER NOT NULL, inode INTEGER NOT NULL,
    seen INTEGER NOT NULL, digest BLOB NOT NULL, outline TEXT, code TEXT
);
CREATE TABLE question (
    id INTEGER PRIMARY KEY, content TEXT UNIQUE NOT NULL, answer BLOB NOT NULL, about INTEGER, word TEXT
);
CREATE INDEX question_about ON question (about) WHERE about IS NOT NULL;
CREATE INDEX question_word ON question (word) WHERE word IS NOT NULL;
CREATE INDEX question_other ON question (id) WHERE about IS NULL AND word IS NULL;
CREATE TABLE member (file INTEGER NOT NULL, question INTEGER NOT NULL, PRIMARY KEY (file, question)) WITHOUT ROWID;
CREATE TABLE import (name TEXT NOT NULL, file INTEGER NOT NULL, PRIMARY KEY (name, file)) WITHOUT ROWID;
CREATE INDEX import_file ON import (file);
CREATE TABLE result (
    file INTEGER NOT NULL, kind BLOB NOT NULL, code BLOB NOT NULL, texts BLOB NOT NULL, questions BLOB NOT NULL,
    content BLOB NOT NULL, PRIMARY KEY (file, kind)
) WITHOUT ROWID;
"""


@dataclass(slots=True, eq=False)
class Row:
    """A file, as the database knows it."""

    id: int
    path: str
    listed: bool
    stamp: Stamp
    seen: int
    """When it was looked at, in nanoseconds since the epoch."""
    digest: bytes
    """Of the contents; empty for a file that does not exist."""
    outline: str | None
    """`FileText.outline`, if it is known."""
    code: str | None
    """`Module.code`, if it is known."""


class Result(NamedTuple):
    """A result about a file."""

    path: Path
    kind: bytes
    content: bytes
    record: Record
    code: str | None = None
    """The digest of the code of the file, if it is known."""
    outline: str | None = None
    """The digest of its imports."""


DAMAGE = (sqlite3.Error, ValueError, TypeError, LookupError, AttributeError, AssertionError)
"""Errors of a file that is damaged, or busy for too long. Rows of another program may have values of other types."""


class Store:
    """An open cache file. Methods raise the errors of DAMAGE."""

    def __init__(self, file: Path, number: int | None = None) -> None:
        """`number` is the state that results belong to, if the file was brought up to it by another process."""
        if file.exists() and file.stat().st_size > _LARGEST:
            file.unlink()
        self.file = file
        # Transactions are begun by hand.
        self._base = sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None)
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = OFF")
        if self._one("SELECT count(*) FROM sqlite_master") == 0:
            with self.writing():
                if self._one("SELECT count(*) FROM sqlite_master") == 0:
                    for statement in _TABLES.split(";\n"):
                        self._base.execute(statement)
                    self._base.execute("INSERT INTO state VALUES (0, '', 0)")
        self.number: int = self._one("SELECT number FROM state") if number is None else number
        self._ids: dict[str, int] = {}
        self._paths: dict[int, Path] = {}
        self._asked: dict[Question, int] = {}
        self._questions: dict[int, Question] = {}

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    @contextmanager
    def writing(self) -> Iterator[bool]:
        """A transaction. Gives False if another process has brought the file up to a later state."""
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield not hasattr(self, "number") or self._one("SELECT number FROM state") == self.number
        except BaseException:
            self._base.execute("ROLLBACK")
            raise
        self._base.execute("COMMIT")

    @property
    def is_writing(self) -> bool:
        """True within a transaction."""
        return self._base.in_transaction

    # The state

    @property
    def shape(self) -> str:
        """The layout of the project, by which modules have their names."""
        found = self._one("SELECT shape FROM state")
        assert isinstance(found, str)
        return found

    def stamp(self, path: str) -> Stamp | None:
        """The stamp of a file; None if the database does not have it."""
        found = self._base.execute("SELECT written, changed, size, inode FROM file WHERE path = ?", (path,)).fetchone()
        return None if found is None else Stamp(*found)

    def rows(self) -> list[Row]:
        """All files."""
        found = self._base.execute(
            "SELECT id, path, listed, written, changed, size, inode, seen, digest, outline, code FROM file"
        )
        rows = [
            Row(id, path, bool(listed), Stamp(written, changed, size, inode), *rest)
            for id, path, listed, written, changed, size, inode, *rest in found
        ]
        self._ids.update((row.path, row.id) for row in rows)
        return rows

    def id(self, path: str) -> int | None:
        """The number of a file; None if the database does not have it."""
        known = self._ids.get(path)
        if known is None:
            known = self._first("SELECT id FROM file WHERE path = ?", (path,))
            if known is not None:
                self._ids[path] = known
        return known

    def put(self, rows: Iterable[Row]) -> None:
        """Write files; those whose id is 0 are new."""
        for row in rows:
            values = (row.path, row.listed, *row.stamp, row.seen, row.digest, row.outline, row.code)
            if row.id:
                self._base.execute(
                    "UPDATE file SET path = ?, listed = ?, written = ?, changed = ?, size = ?, inode = ?, seen = ?,"
                    " digest = ?, outline = ?, code = ? WHERE id = ?",
                    (*values, row.id),
                )
            else:
                self._base.execute(f"INSERT INTO file VALUES (NULL{', ?' * len(values)})", values)

    def join(self) -> None:
        """Add results to the present state, which another process may have begun since the file was opened."""
        self.number = self._one("SELECT number FROM state")

    def advance(self, shape: str) -> None:
        """Begin a new state."""
        self.number = self._one("SELECT number FROM state") + 1
        self._base.execute("UPDATE state SET number = ?, shape = ?", (self.number, shape))

    def forget_all(self) -> None:
        """Remove all results."""
        self._base.execute("DELETE FROM result")
        self._base.execute("DELETE FROM question")
        self._base.execute("DELETE FROM member")
        self._base.execute("DELETE FROM import")
        self._base.execute("UPDATE state SET imports = 0")
        self._base.execute("DELETE FROM file")
        self._ids.clear()

    def forget(
        self,
        code: set[int],
        texts: set[int],
        words: Collection[str] | None,
        keeps: Callable[[Question, StoredAnswers], bool],
    ) -> None:
        """Remove the results that rest on the code or texts of some files, or on a question with a new answer.

        `words` are those of the edited files; None if questions about any word may have a new answer.
        """
        # Answers rest on results about files, so those of the edited files go first.
        self._remove(lambda in_code, in_texts, _: not (code.isdisjoint(in_code) and texts.isdisjoint(in_texts)))
        answers = StoredAnswers(self)
        gone = {id for id in self._touched(texts, words) if not keeps(self._question(id), answers)}
        if gone:
            self._remove(lambda _in_code, _in_texts, asked: not gone.isdisjoint(asked))
        self._base.executemany("DELETE FROM question WHERE id = ?", ((id,) for id in gone))
        self._base.executemany("DELETE FROM member WHERE question = ?", ((id,) for id in gone))
        # They were read to compare them; asked again, they are new.
        self._asked = {question: id for question, id in self._asked.items() if id not in gone}
        self._questions = {id: question for id, question in self._questions.items() if id not in gone}

    def _remove(self, is_old: Callable[[array[int], array[int], array[int]], bool]) -> None:
        """Remove the results for whose files, read as code and as texts, and questions the answer is true."""
        results = self._base.execute("SELECT file, kind, code, texts, questions FROM result").fetchall()
        old = [(file, kind) for file, kind, *reads in results if is_old(*map(_numbers, reads))]
        self._base.executemany("DELETE FROM result WHERE file = ? AND kind = ?", old)

    def _touched(self, files: set[int], words: Collection[str] | None) -> set[int]:
        """The questions that may have a new answer after an edit of some files, which have these words now."""
        if words is None:
            return set(self._column("SELECT id FROM question"))
        found = set(self._column("SELECT id FROM question WHERE about IS NULL AND word IS NULL"))
        found.update(self._among("SELECT id FROM question WHERE about IN", files))
        # A file whose edit makes it leave the answer to a question was in that answer.
        found.update(self._among("SELECT question FROM member WHERE file IN", files))
        found.update(self._among("SELECT id FROM question WHERE word IN", words))
        return found

    def _among(self, start: str, values: Collection[int] | Collection[str]) -> Iterator[int]:
        """The numbers that a statement gives for some values."""
        left = list(values)
        for at in range(0, len(left), _MOST_VALUES):
            some = left[at : at + _MOST_VALUES]
            for (number,) in self._base.execute(f"{start} ({', '.join('?' * len(some))})", some):
                yield number

    # Imports

    @property
    def has_imports(self) -> bool:
        """True if the database has the imports of all files of the project."""
        return bool(self._one("SELECT imports FROM state"))

    def importing(self, name: str) -> tuple[Path, ...] | None:
        """The files that import a full name; None if the database does not have the imports."""
        if not self.has_imports:
            return None
        found = self._base.execute("SELECT path FROM import JOIN file ON file = id WHERE name = ?", (name,))
        return tuple(sorted(Path(path) for (path,) in found))

    def put_imports(self, names: Mapping[str, Collection[str]]) -> None:
        """Write the imports of all files of the project."""
        with self.writing() as is_current:
            if is_current:
                self.renew_imports(names)
                self._base.execute("UPDATE state SET imports = 1")

    def renew_imports(self, names: Mapping[str, Collection[str]]) -> None:
        """Write the imports of some files anew; of files that the database has."""
        ids = {path: id for path in names if (id := self.id(path)) is not None}
        self._base.executemany("DELETE FROM import WHERE file = ?", ((id,) for id in ids.values()))
        pairs = ((name, id) for path, id in ids.items() for name in names[path])
        self._base.executemany("INSERT INTO import VALUES (?, ?)", pairs)

    # Results

    def find(self, path: Path, kind: bytes) -> bytes | None:
        """The result of a kind about a file."""
        found: bytes | None = self._first(
            "SELECT content FROM result JOIN file ON file = id WHERE path = ? AND kind = ?", (str(path), kind)
        )
        return found

    def record(self, path: Path, kind: bytes) -> Record:
        """The record of a result."""
        row = self._base.execute(
            "SELECT result.code, texts, questions FROM result JOIN file ON file = id WHERE path = ? AND kind = ?",
            (str(path), kind),
        ).fetchone()
        code, texts, questions = map(_numbers, row)
        asked = StoredAnswers(self, [self._question(id) for id in questions])
        return Record(frozenset(map(self._path, code)), frozenset(map(self._path, texts)), asked)

    def add(self, results: Sequence[Result], unknown: Callable[[Path], Row]) -> None:
        """Add results. `unknown` gives the row of a file that the database does not have.

        Other processes wait only while files and questions that are new get numbers, and while the rows are written.
        """
        records = [result.record for result in results]
        paths = {path for record in records for path in (*record.code, *record.texts) if self.id(str(path)) is None}
        asked = [
            (question, record.questions)
            for record in records
            for question in record.questions
            if question not in self._asked
        ]
        if paths or asked:
            with self.writing() as is_current:
                if not is_current:
                    return
                for path in sorted(paths):
                    self._id(path, unknown)
                for question, answers in asked:
                    self._asking(question, answers, unknown)
        rows = [
            (self._ids[str(each.path)], each.kind, *self._numbers_of(each.record), each.content) for each in results
        ]
        about = [(each.code, each.outline, self._ids[str(each.path)]) for each in results if each.code is not None]
        with self.writing() as is_current:
            if is_current:
                self._base.executemany("INSERT OR REPLACE INTO result VALUES (?, ?, ?, ?, ?, ?)", rows)
                self._base.executemany("UPDATE file SET code = ?, outline = ? WHERE id = ?", about)

    def _numbers_of(self, record: Record) -> tuple[bytes, bytes, bytes]:
        code, texts = (
            array("I", sorted(self._ids[str(path)] for path in paths)) for paths in (record.code, record.texts)
        )
        asked = array("I", sorted(self._asked[question] for question in record.questions))
        return code.tobytes(), texts.tobytes(), asked.tobytes()

    def answer(self, question: Question) -> object:
        """The answer to a question; None if the database does not have it."""
        row = self._base.execute("SELECT id, answer FROM question WHERE content = ?", (_written(question),)).fetchone()
        if row is None:
            return None
        self._asked[question] = row[0]
        found = json.loads(unpacked(row[1]))
        return tuple(map(self._path, _undone(found))) if question.file is None else _frozen(found)

    def _asking(self, question: Question, answers: Mapping[Question, object], unknown: Callable[[Path], Row]) -> int:
        known = self._asked.get(question)
        if known is None:
            content = _written(question)
            known = self._first("SELECT id FROM question WHERE content = ?", (content,))
            if known is None:
                known = self._insert(question, content, answers[question], unknown)
            self._asked[question] = known
        return known

    def _insert(self, question: Question, content: str, answer: object, unknown: Callable[[Path], Row]) -> int:
        about = self._id(question.file, unknown) if question.file is not None else None
        members: list[int] = []
        if question.file is None:
            assert isinstance(answer, tuple)
            members = [self._id(path, unknown) for path in answer]
            answer = _steps(members)
        data = zlib.compress(json.dumps(answer).encode(), 1)
        values = (content, data, about, question.word)
        id = self._base.execute("INSERT INTO question VALUES (NULL, ?, ?, ?, ?)", values).lastrowid
        assert id is not None
        self._base.executemany("INSERT INTO member VALUES (?, ?)", ((member, id) for member in members))
        return id

    def _question(self, id: int) -> Question:
        known = self._questions.get(id)
        if known is None:
            content = self._one("SELECT content FROM question WHERE id = ?", id)
            known = self._questions[id] = _read(content)
            self._asked[known] = id
        return known

    def _id(self, path: Path, unknown: Callable[[Path], Row]) -> int:
        name = str(path)
        known = self.id(name)
        if known is None:
            self.put([unknown(path)])
            known = self.id(name)
            assert known is not None
        return known

    def _path(self, id: int) -> Path:
        known = self._paths.get(id)
        if known is None:
            known = self._paths[id] = Path(self._one("SELECT path FROM file WHERE id = ?", id))
        return known

    def _one(self, statement: str, *values: object) -> Any:
        return self._base.execute(statement, values).fetchone()[0]

    def _first(self, statement: str, values: tuple[object, ...]) -> Any:
        row = self._base.execute(statement, values).fetchone()
        return None if row is None else row[0]

    def _column(self, statement: str) -> list[Any]:
        return [value for (value,) in self._base.execute(statement)]


class StoredAnswers(Mapping[Question, object]):
    """The answers to some questions, read when they are asked for; None if the database has none any more."""

    def __init__(self, store: Store, questions: Iterable[Question] = ()) -> None:
        self._store = store
        self._own = dict.fromkeys(questions)

    def __getitem__(self, question: Question) -> object:
        try:
            return self._store.answer(question)
        except DAMAGE:
            return None

    def __iter__(self) -> Iterator[Question]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)


def _numbers(data: bytes) -> array[int]:
    found = array("I")
    found.frombytes(data)
    return found


def _steps(numbers: list[int]) -> list[int]:
    """Numbers as their differences, which compress well."""
    return [number - before for before, number in zip([0, *numbers], numbers, strict=False)]


def _undone(steps: list[int]) -> Iterator[int]:
    at = 0
    for step in steps:
        at += step
        yield at


def _frozen(value: object) -> object:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _written(question: Question) -> str:
    arguments = [
        ["pattern", each.pattern, each.flags] if isinstance(each, re.Pattern) else [_kind(each), str(each)]
        for each in question.arguments
    ]
    return json.dumps([question.asks, arguments])


def _kind(argument: object) -> str:
    return "path" if isinstance(argument, Path) else "word"


def _read(content: str) -> Question:
    asks, arguments = json.loads(content)
    return Question(asks, tuple(map(_argument, arguments)))


def _argument(written: list[Any]) -> str | Path | re.Pattern[str]:
    kind, text, *flags = written
    return re.compile(text, *flags) if kind == "pattern" else Path(text) if kind == "path" else text
