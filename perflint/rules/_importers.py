"""The files of a project that import a module, and what their text says.

Files are read once, and not parsed: what most rules ask of them is settled by a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from weakref import WeakKeyDictionary

from perflint.frozen import dataclass
from perflint.rules._weights import downloads_weights, has_published_weights
from perflint.semantics.importers import imported, package_of, text_of
from perflint.semantics.model import Model
from perflint.semantics.project import Project

_RUNS = re.compile(
    r"autocast|GradScaler|\.half\(\)|\.bfloat16\(\)|precision|\b(?:bf16|fp16)\s*=|allow_tf32|_int_mm",
)


@dataclass(frozen=True, slots=True)
class Importer:
    """A file: its module's name, the full names that it imports, and what words it has."""

    name: str
    imports: frozenset[str]
    may_run_models: bool
    """Whether it says something of number formats."""
    downloads_weights: bool


_KNOWN: WeakKeyDictionary[Project, dict[str, Importer | None]] = WeakKeyDictionary()
"""Facts about the files of a project, by name; None for files without relevant facts."""


def importers(model: Model) -> Iterator[Importer]:
    """The files of the project that import a file's module, something of it, or the package that it lies in."""
    name = model.module.name
    package = name.rpartition(".")[0]
    for file in _files(model.project):
        if file.name != name and any(
            f"{each}.".startswith(f"{name}.") or (package and each == package) for each in file.imports
        ):
            yield file


def is_published(model: Model) -> bool:
    """Whether a file's models come with published weights, by its own words or those of a file that imports it."""
    return has_published_weights(model.source.text) or any(file.downloads_weights for file in importers(model))


def _files(project: Project) -> Iterator[Importer]:
    known = _KNOWN.setdefault(project.origin, {})
    for name, path in list(project.files.items()):
        if name not in known:
            known[name] = _read(name, path)
        file = known[name]
        if file is not None:
            yield file


def _read(name: str, path: Path) -> Importer | None:
    text = text_of(path)
    runs, downloads = _RUNS.search(text) is not None, downloads_weights(text)
    if not runs and not downloads:
        return None
    return Importer(name, frozenset(imported(text, package_of(name, path))), runs, downloads)
