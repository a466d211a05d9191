"""The value of each setting in a run, and the places that set it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perflint.config.keys import KEYS, SELECTION, Key
from perflint.config.settings import Options
from perflint.frozen import dataclass

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Effective:
    """A setting, its value, and the places that set it, the last that counts last."""

    key: Key
    value: Any
    origins: tuple[str, ...]
    """`default` alone if no place sets it."""

    def toml(self) -> str:
        """The line of TOML that sets it; a comment if it has no value."""
        where = ", ".join(self.origins)
        if self.value is None:
            return f"# {self.key.name} is not set"
        return f"{self.key.name} = {self.key.kind.shown(self.value)}  # {where}"


def effective(places: Sequence[Options]) -> list[Effective]:
    """The settings that some places make; later ones win."""
    return [_one(key, places) for key in KEYS.values() if key.name != "extend"]


def _one(key: Key, places: Sequence[Options]) -> Effective:
    stated = [(_stated(key, place), place.selection.origin) for place in places]
    given = [(value, origin) for value, origin in stated if value not in (None, ())]
    if not given:
        return Effective(key, key.default, (DEFAULT,))
    if key.kind.extends:
        joined = tuple(item for value, _ in given for item in value)
        return Effective(key, joined, tuple(dict.fromkeys(origin for _, origin in given)))
    value, origin = given[-1]
    return Effective(key, value, (origin,))


def _stated(key: Key, place: Options) -> Any:
    """The value that a place gives to a setting; None or empty if it gives none."""
    return getattr(place.selection if key.name in SELECTION else place, key.attribute)
