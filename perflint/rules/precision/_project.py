"""In which number formats a file's layers run: by the file itself, or by the files that import it."""

from __future__ import annotations

from perflint.frozen import dataclass
from perflint.rules._weights import running
from perflint.rules.precision._region import Format, Region, region, region_of_runs
from perflint.semantics.model import Model


@dataclass(frozen=True, slots=True)
class Setting:
    """The formats, and whether the file itself says so."""

    region: Region
    near: bool


def setting(model: Model) -> Setting:
    """The formats that the layers of a file compute in."""
    own = region(model)
    if own.formats:
        return Setting(own, True)
    formats: set[Format] = set()
    for file in running(model):
        module = model.view.at(file.path)
        if module is not None:
            formats |= region_of_runs(module).formats
    return Setting(Region(frozenset(formats), own.float32_convolutions), not formats)
