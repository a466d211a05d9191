"""Brings a cache file up to the present state of the files, and so forgets the results that edits have touched."""

from __future__ import annotations

import os
import time
from pathlib import Path

from perflint.engine.cache.files import digest_of, stamp_of
from perflint.engine.cache.store import Row, Store
from perflint.frozen import replace
from perflint.semantics.changes import Changes, Difference
from perflint.semantics.project import Project

_NEW = Difference(code=True, outline=True)
_UNSEEN = Difference(code=False, outline=False)
"""A file that no run has read as code: questions about all files may have another answer."""


def bring_up(store: Store, project: Project) -> None:
    """Compare all files that the database knows, and those that the project lists, with their state on the disk.

    Raises the errors of DAMAGE.
    """
    with store.writing():
        store.join()
        rows = {row.path: row for row in store.rows()}
        listed = frozenset(project.paths)
        shape = f"{project.is_whole} {os.path.commonpath(listed) if listed else ''}"
        changed: list[Row] = []
        differences: dict[Row, Difference] = {}
        moved = bool(rows) and shape != store.shape
        settings = frozenset(project.settings or ())
        for path in sorted(rows.keys() | listed | settings):
            row = rows.get(path)
            now = _now(path, path in listed, row)
            if now is row:
                continue
            changed.append(now)
            if row is None or now.digest != row.digest or now.listed != row.listed:
                # It decides on the names of the modules in its folder.
                moved = moved or (os.path.basename(path) == "__init__.py" and (row is None or _appears(row, now)))
                if path in settings:
                    differences[now] = _UNSEEN
                else:
                    differences[now] = _NEW if row is None else _described(row, now, project)
        if moved or not rows:
            store.forget_all()
            store.put(replace(row, id=0) for row in {**rows, **{row.path: row for row in changed}}.values())
        else:
            store.put(changed)
            if differences:
                if store.has_imports:
                    store.renew_imports({row.path: _imports(row, project) for row in differences})
                _forget(store, differences, project)
        if differences or moved or not rows:
            store.advance(shape)


def _now(path: str, is_listed: bool, row: Row | None) -> Row:
    """The present row of a file, which is the given one if nothing has changed."""
    stamp, now = stamp_of(path), time.time_ns()
    if row is not None and stamp == row.stamp and is_listed == row.listed and stamp.shows_edits(row.seen):
        return row
    digest = digest_of(path, stamp)
    if row is None:
        return Row(0, path, is_listed, stamp, now, digest, None, None)
    is_same = digest == row.digest
    return Row(
        row.id,
        path,
        is_listed,
        stamp,
        now,
        digest,
        row.outline if is_same else None,
        row.code if is_same else None,
    )


def _appears(row: Row, now: Row) -> bool:
    return bool(row.digest) != bool(now.digest)


def _described(row: Row, now: Row, project: Project) -> Difference:
    """The difference between two states of a file; notes the digests of the new one."""
    path = Path(now.path)
    file = project.file_text(path) if row.listed and now.listed and not _appears(row, now) else None
    module = project.module_at(path) if file is not None and row.code is not None else None
    if file is None:
        return Difference(code=True, outline=True)
    now.outline = file.outline
    now.code = None if module is None else module.code
    return Difference(
        code=now.code is None or now.code != row.code, outline=row.outline is None or now.outline != row.outline
    )


def _imports(row: Row, project: Project) -> frozenset[str]:
    file = project.file_text(Path(row.path)) if row.digest else None
    return frozenset() if file is None else file.bound


def _forget(store: Store, differences: dict[Row, Difference], project: Project) -> None:
    changes = Changes({Path(row.path): difference for row, difference in differences.items()})
    ids = {id: difference for row, difference in differences.items() if (id := store.id(row.path)) is not None}
    store.forget(
        {id for id, difference in ids.items() if difference.code},
        set(ids),
        changes.words(project),
        lambda question, answers: changes.keep(question, answers, project),
    )
