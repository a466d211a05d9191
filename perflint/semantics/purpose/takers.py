"""True if other files take a name from a file: by `from m import name`, `from m import *` or `m.name`.

Modules are compared by the last part of their names, since scripts import from the folder that they are started in.
"""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path

from perflint.semantics.binders import imported
from perflint.semantics.model import Model
from perflint.semantics.structure import path_of

_BASES = r"(?m)^[ \t]*class \w++\([^)]{0,1000}?\b%s\b"
"""A class with a base of that name."""


def is_taken(model: Model, name: str) -> bool:
    """True if another file may use a name of the top level of a file."""
    if not model.view.project.is_whole:
        return True
    return _is_taken_from(model, model.module.name.split("~")[0].rpartition(".")[2], name, {model.module.path})


def _is_taken_from(model: Model, module: str, name: str, seen: set[Path]) -> bool:
    """True if a file that is not among those seen may use a name of a module, or of one that takes all of its names."""
    for file in model.view.naming(module):
        if file.path in seen:
            continue
        text = model.view.text(file)
        if _takes(text, file.package, module, name):
            return True
        if "*" in text and not name.startswith("_") and _takes(text, file.package, module, "*"):
            seen.add(file.path)
            if file.path.name == "__init__.py" or _is_taken_from(model, file.path.stem, name, seen):
                # The names of a package are for others.
                return True
    return False


def is_overridden(model: Model, cls: str, method: str) -> bool:
    """True if another file may define a method in a subclass of a class of the file."""
    if not model.view.project.is_whole:
        return True
    defined = re.compile(rf"\bdef {re.escape(method)}\b")
    others = (file for file in model.view.matching(re.compile(_BASES % cls)) if file.path != model.module.path)
    return any(model.view.finds(file.path, defined) for file in others)


def _takes(text: str, package: str, module: str, name: str) -> bool:
    """True if a file of a package uses a name of a module that it names; "*" stands for the import of all names."""
    if name not in text:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    aliases = {module}
    for each in (each for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)) for each in imported(node)):
        if isinstance(each.statement, ast.Import):
            if each.alias.asname and _last(each.full) == module:
                aliases.add(each.local)
        else:
            is_it = each.alias.name == name or (each.alias.name == "*" and not name.startswith("_"))
            if is_it and _last(each.statement.module or package) == module:
                return True
            if each.alias.name == module:
                aliases.add(each.local)
    return any(_uses(node, aliases, module, name) for node in nodes)


def _uses(node: ast.AST, aliases: set[str], module: str, name: str) -> bool:
    """True for `module.name`, `alias.name`, and the name in quotes, as for `getattr` and `patch`."""
    if isinstance(node, ast.Attribute):
        return node.attr == name and _last(path_of(node.value)) in aliases
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value == name or node.value.endswith(f"{module}.{name}")
    return False


def _last(path: str) -> str:
    return path.rpartition(".")[2]
