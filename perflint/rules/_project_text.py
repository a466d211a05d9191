"""Searches in the texts of a project's files, which are not parsed."""

from __future__ import annotations

import re
from pathlib import Path
from weakref import WeakKeyDictionary

from perflint.semantics.importers import text_of
from perflint.semantics.model import Model
from perflint.semantics.project import Project

_KNOWN: WeakKeyDictionary[Project, dict[re.Pattern[str], dict[Path, bool]]] = WeakKeyDictionary()
"""Which files match a pattern; each file is read once for each pattern."""


def some_file_says(model: Model, pattern: re.Pattern[str]) -> bool:
    """Whether the text of a file of the project matches a pattern somewhere; its own file comes first."""
    if pattern.search(model.source.text):
        return True
    known = _KNOWN.setdefault(model.project.origin, {}).setdefault(pattern, {})
    for path in list(model.project.files.values()):
        if path not in known:
            known[path] = pattern.search(text_of(path)) is not None
        if known[path]:
            return True
    return False
