"""Whether other files take a name from a file: by `from m import name`, `from m import *` or `m.name`.

Files count that are checked together, and those below the folder that the file's imports start from,
which may not be among them: a hook checks single files. Modules are compared by the last part of their
names, since scripts import from the folder that they are started in.
"""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from weakref import WeakKeyDictionary

from perflint.config.settings import DEFAULT_EXCLUDES
from perflint.frozen import dataclass
from perflint.semantics.importers import imported, package_of, text_of
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.structure import path_of

_MOST_FILES = 3000
_MOST_ENTRIES = 30_000
_QUOTED = re.compile(r"[\"']((?:\w++\.)++\w++)[\"']")
"""`patch("package.module.name")`."""
_BASES = re.compile(r"^[ \t]*class \w++\(([^)]{0,1000}+)\)", re.MULTILINE)


@dataclass(slots=True)
class _Files:
    """The files around a module."""

    by_module: dict[str, set[Path]] = field(default_factory=dict)
    """The files that name a module, by the last part of the module's name."""
    packages: dict[Path, str] = field(default_factory=dict)
    """The last part of the name of the package that each file is in."""
    by_base: dict[str, set[Path]] = field(default_factory=dict)
    """The files that derive a class from one of a name."""
    are_all: bool = True
    """Whether there are not too many to read them all."""


_KNOWN: WeakKeyDictionary[Project, dict[Path, _Files]] = WeakKeyDictionary()
"""The files by the folder that imports start from."""


def is_taken(model: Model, name: str) -> bool:
    """Whether another file may use a name of the top level of a file."""
    files = _around(model)
    if files is None:
        return False
    path, module = model.module.path, model.module.name.split("~")[0].rpartition(".")[2]
    if not files.are_all:
        return True
    return any(_takes(each, files, module, name) for each in files.by_module.get(module, ()) if each != path)


def is_overridden(model: Model, cls: str, method: str) -> bool:
    """True if another file may define a method in a subclass of a class of the file."""
    files = _around(model)
    if files is None:
        return False
    if not files.are_all:
        return True
    others = files.by_base.get(cls, set()) - {model.module.path}
    return any(re.search(rf"\bdef {re.escape(method)}\b", text_of(path)) for path in others)


def _around(model: Model) -> _Files | None:
    """The files around a module; None for standard input, or a text without a file."""
    if not model.module.path.is_file():
        return None
    known = _KNOWN.setdefault(model.project.origin, {})
    root = model.module.root
    if root not in known:
        known[root] = _read(model.project, root)
    return known[root]


def _read(project: Project, root: Path) -> _Files:
    files = _Files()
    paths = {path: key for key, path in project.files.items()}
    for found in _below(root):
        if found is None or len(paths) > _MOST_FILES:
            files.are_all = False
            return files
        paths.setdefault(found, ".".join(found.relative_to(root).with_suffix("").parts))
    for path, key in paths.items():
        text, package = text_of(path), package_of(key.removesuffix(".__init__"), path)
        files.packages[path] = package.rpartition(".")[2]
        for bases in _BASES.findall(text):
            for name in re.findall(r"\w+", bases):
                files.by_base.setdefault(name, set()).add(path)
        for full in (*imported(text, package), *_QUOTED.findall(text)):
            for module in full.split(".")[-2:]:
                files.by_module.setdefault(module, set()).add(path)
    return files


def _below(root: Path) -> Iterator[Path | None]:
    """The Python files below a folder; None where there is too much in it."""
    entries = 0
    for folder, folders, names in os.walk(root):
        folders[:] = [each for each in folders if each not in DEFAULT_EXCLUDES and not each.startswith(".")]
        entries += len(folders) + len(names)
        if entries > _MOST_ENTRIES:
            yield None
        yield from (Path(folder, name) for name in names if name.endswith(".py"))


def _takes(path: Path, files: _Files, module: str, name: str) -> bool:
    """Whether a file uses a name of a module that it names."""
    text = text_of(path)
    if name not in text and "*" not in text:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    aliases = {module}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            origin = (node.module or files.packages[path]).rpartition(".")[2]
            for alias in node.names:
                if origin == module and (alias.name == name or (alias.name == "*" and not name.startswith("_"))):
                    return True
                if alias.name == module:
                    aliases.add(alias.asname or alias.name)
        elif isinstance(node, ast.Import):
            aliases.update(alias.asname for alias in node.names if alias.asname and _last(alias.name) == module)
    return any(_uses(node, aliases, module, name) for node in nodes)


def _uses(node: ast.AST, aliases: set[str], module: str, name: str) -> bool:
    """`module.name`, `alias.name`, or the name in quotes, as for `getattr` and `patch`."""
    if isinstance(node, ast.Attribute):
        return node.attr == name and _last(path_of(node.value)) in aliases
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value == name or node.value.endswith(f"{module}.{name}")
    return False


def _last(path: str) -> str:
    return path.rpartition(".")[2]
