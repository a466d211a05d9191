"""Files that a project keeps, but no longer runs: those in folders such as `legacy`, which no other file imports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perflint.semantics.callers.reach import spellings
from perflint.semantics.facts import conventions
from perflint.semantics.test_files import folders

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred

_MOST_FILES = 40
"""Files in such folders that import each other, and are looked at."""


def is_retired(model: Inferred) -> bool:
    """True if a file is in a folder of retired code, and no file outside of such folders imports it.

    Tests do not count. A file that another retired file imports is in use if that one is.
    """
    root = model.module.root
    if not _lies_in(model.module.path, root):
        return False
    waiting, seen = [model.module], {model.module.path}
    for module in waiting:
        for name in spellings(model.view, module):
            for file in model.view.around(name):
                if file.path in seen or model.view.is_of_tests(file.path):
                    continue
                other = model.view.peek(file.path)
                if not _lies_in(file.path, root) or other is None or len(waiting) >= _MOST_FILES:
                    return False
                seen.add(file.path)
                waiting.append(other)
    return True


def _lies_in(path: Path, root: Path | None) -> bool:
    return any(map(conventions.is_retired, folders(path, root)))
