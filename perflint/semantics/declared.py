"""Facts about functions that the settings of a project declare."""

from __future__ import annotations

import re
from functools import cache
from typing import Protocol

from perflint.findings import Heat
from perflint.frozen import dataclass


class Functions(Protocol):
    """The settings that declare functions."""

    @property
    def hot_functions(self) -> tuple[str, ...]:
        """Functions that run in each step."""

    @property
    def cold_functions(self) -> tuple[str, ...]:
        """Functions that rarely run."""


@dataclass(frozen=True, slots=True)
class Declared:
    """The names of functions that the settings declare.

    A name is the end of a full name, in whole parts: `step`, `Trainer.step` or `app.train.Trainer.step`. In a name, `*`
    stands for any characters but dots.
    """

    hot: tuple[str, ...] = ()
    cold: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Functions) -> Declared:
        """The declarations of some settings."""
        return cls(settings.hot_functions, settings.cold_functions)

    def heat(self, module: str, qualname: str) -> Heat | None:
        """How often a function runs; None if the settings do not say so. A function in both lists is hot."""
        if not self.hot and not self.cold:
            return None
        name = f"{module}.{qualname}".replace(".<locals>", "")
        if _pattern(self.hot).fullmatch(name):
            return Heat.HOT
        return Heat.COLD if _pattern(self.cold).fullmatch(name) else None

    @property
    def key(self) -> str:
        """A text that differs if the declarations do."""
        return repr((self.hot, self.cold))


@cache
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """The full names that end in one of some names."""
    return re.compile(rf"(?:.*\.)?(?:{'|'.join(map(_one, names))})" if names else r"(?!)")


def _one(name: str) -> str:
    return r"[^.]*".join(re.escape(part) for part in name.split("*"))
