"""In which number formats a file's layers run: what the file says, or the files that import it."""

from __future__ import annotations

from dataclasses import dataclass

from perflint.rules.precision._region import Region, region
from perflint.semantics.model import Model


@dataclass(frozen=True, slots=True)
class Setting:
    """The formats, and whether the file itself says so."""

    region: Region
    near: bool


def setting(model: Model) -> Setting:
    """The formats that the layers of a file compute in."""
    return Setting(region(model.source), True)
