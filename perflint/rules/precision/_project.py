"""In which number formats a file's layers run: what the file says, or the files that import it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from perflint.rules.precision._region import Format, Region, mentions_format, region, region_of_runs
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.structure import walk


@dataclass(frozen=True, slots=True)
class Setting:
    """The formats, and whether the file itself says so."""

    region: Region
    near: bool


@dataclass(frozen=True, slots=True)
class _Runner:
    """A file that runs models in some format, and the full names that it imports."""

    region: Region
    imports: frozenset[str]


_RUNNERS: WeakKeyDictionary[Project, dict[str, _Runner | None]] = WeakKeyDictionary()
"""What was read of a project's files, None for those that say nothing; reading them again for each file is dear."""


def setting(model: Model) -> Setting:
    """The formats that the layers of a file compute in."""
    own = region(model.source)
    if own.formats:
        return Setting(own, True)
    formats: set[Format] = set()
    for runner in _runners(model.project):
        if _imports(runner, model.module.name):
            formats |= runner.region.formats
    return Setting(Region(frozenset(formats), own.float32_convolutions), not formats)


def _imports(runner: _Runner, name: str) -> bool:
    """Whether a file imports a module, something of it, or the package that it lies in."""
    package = name.rpartition(".")[0]
    return any(f"{each}.".startswith(f"{name}.") or (package and each == package) for each in runner.imports)


def _runners(project: Project) -> Iterator[_Runner]:
    known = _RUNNERS.setdefault(project, {})
    for name, path in list(project.files.items()):
        if name not in known:
            known[name] = _read(project, name, path)
        runner = known[name]
        if runner is not None:
            yield runner


def _read(project: Project, name: str, path: Path) -> _Runner | None:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        # What cannot be read tells nothing; it is reported where it is checked itself.
        return None
    module = project.loaded(name) if mentions_format(text) else None
    if module is None:
        return None
    found = region_of_runs(module.tree)
    if not found.formats:
        return None
    imports: set[str] = set()
    for node in walk(module.tree):
        if isinstance(node, ast.Import):
            imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = module.absolute(node.module, node.level)
            imports.add(origin)
            imports.update(f"{origin}.{alias.name}" for alias in node.names)
    return _Runner(found, frozenset(imports))
