"""Files whose code only the programs of a project use: no package exports it, and no model is made of it."""

from __future__ import annotations

import re
from pathlib import Path

from perflint.semantics.callers.reach import spellings
from perflint.semantics.project import Module
from perflint.semantics.test_files import is_test_path
from perflint.semantics.view import View

_MODEL = re.compile(r"^\s*class \w+\([^)]*\w*Module\b", re.MULTILINE)
"""A class that derives from `nn.Module`, `LightningModule` or the like."""
_MOST_USERS = 8
"""Files that import a file; one that more files import is a library of the project."""


def serves_programs(view: View, module: Module) -> bool:
    """True if other files use a module, none of them is a package or holds a model, and no package exports these.

    False for a file without importers: they may be in another project.
    """
    if view.finds(module.path, _MODEL):
        return False
    users = _users(view, module)
    if not users or len(users) > _MOST_USERS:
        return False
    if any(_is_package(path) or view.finds(path, _MODEL) for path in users):
        return False
    others = (view.peek(path) for path in users)
    return not any(_is_package(path) for other in others if other is not None for path in _users(view, other))


def _users(view: View, module: Module) -> set[Path]:
    """The files that import a definition of a module, without tests."""
    found = {
        file.path
        for spelling in spellings(module)
        for name in module.definitions
        for file in view.importers(spelling, name)
    }
    return {path for path in found if path != module.path and not is_test_path(path)}


def _is_package(path: Path) -> bool:
    return path.name == "__init__.py"
