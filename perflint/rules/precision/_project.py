"""In which number formats a file's layers run: what the file says, or the files that import it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from perflint.frozen import dataclass
from perflint.rules._importers import Importer, importers
from perflint.rules.precision._region import Format, Region, region, region_of_runs
from perflint.semantics.model import Model
from perflint.semantics.project import Project


@dataclass(frozen=True, slots=True)
class Setting:
    """The formats, and whether the file itself says so."""

    region: Region
    near: bool


_REGIONS: WeakKeyDictionary[Project, dict[str, Region]] = WeakKeyDictionary()
"""Facts from importing files; parsing them again for each file is expensive."""


def setting(model: Model) -> Setting:
    """The formats that the layers of a file compute in."""
    own = region(model)
    if own.formats:
        return Setting(own, True)
    formats: set[Format] = set()
    for file in importers(model):
        if file.may_run_models:
            formats |= _region_of(model.project, file).formats
    return Setting(Region(frozenset(formats), own.float32_convolutions), not formats)


def _region_of(project: Project, file: Importer) -> Region:
    known = _REGIONS.setdefault(project, {})
    if file.name not in known:
        module = project.loaded(file.name)
        known[file.name] = Region() if module is None else region_of_runs(module.tree)
    return known[file.name]
