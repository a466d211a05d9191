"""Files whose code a project uses for its own programs: it offers them to no other code, and no model is made of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from perflint.semantics.callers.reach import spellings
from perflint.semantics.module import Module
from perflint.semantics.view import View

_MODEL = re.compile(r"^\s*class \w+\([^)]*\w*Module\b", re.MULTILINE)
"""A class that derives from `nn.Module`, `LightningModule` or the like."""
_MOST_USERS = 8
"""Files that import a file; one that more files import is a library of the project."""


def serves_programs(view: View, module: Module) -> bool:
    """True if the project uses a module and offers it to no other code, and no file with a model uses it.

    A package whose `__init__.py` imports nothing of its own offers nothing. Other packages offer what any `__init__.py`
    imports, and what those files use. A file by itself, without importers, may belong to another project.
    """
    if view.finds(module.path, _MODEL):
        return False
    users = _users(view, module)
    if len(users) > _MOST_USERS or any(view.finds(path, _MODEL) for path in users):
        return False
    package = _package_of(view, module)
    if package is not None and not _offers(package):
        return True
    if not users or any(map(_is_package, users)):
        return False
    others = (view.peek(path) for path in users)
    return not any(_is_package(path) for other in others if other is not None for path in _users(view, other))


def serves_project(view: View, module: Module) -> bool:
    """True if files of the project use a module, and no package offers it to other code. Models may be made of it."""
    if is_offered(view, module):
        return False
    users = _users(view, module)
    return bool(users) and not any(map(_is_package, users))


def is_offered(view: View, module: Module) -> bool:
    """True if the outermost package around a module offers anything to other code."""
    package = _package_of(view, module)
    return package is not None and _offers(package)


def is_imported(view: View, module: Module) -> bool:
    """True if another file, which is not a test, imports a definition of a module."""
    return bool(_users(view, module))


def _package_of(view: View, module: Module) -> Module | None:
    """The `__init__.py` of the outermost package around a module; None if it is in no package."""
    top, dot, _ = module.name.partition(".")
    return view.peek(module.root / top / "__init__.py") if dot else None


def _offers(package: Module) -> bool:
    """True if a package imports anything of its own but its version, or finds its names when they are asked for."""
    top = package.name
    if "__getattr__" in package.definitions or "_import_structure" in package.definitions:
        return True
    for node in package.structure.every(ast.ImportFrom):
        names = [alias.name for alias in node.names if "version" not in alias.name]
        if names and (node.level or (node.module or "").partition(".")[0] == top):
            return True
    imported = (alias.name for node in package.structure.every(ast.Import) for alias in node.names)
    return any(name.startswith(f"{top}.") for name in imported)


def _users(view: View, module: Module) -> set[Path]:
    """The files that import a definition of a module, without tests."""
    found = {
        file.path
        for spelling in spellings(view, module)
        for name in module.definitions
        for file in view.importers(spelling, name)
    }
    return {path for path in found if path != module.path and not view.is_of_tests(path)}


def _is_package(path: Path) -> bool:
    return path.name == "__init__.py"
