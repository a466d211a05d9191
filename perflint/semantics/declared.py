"""Facts that the settings of a project declare: about functions, and where imports start."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Protocol

from perflint.findings import Heat
from perflint.frozen import dataclass


class Settings(Protocol):
    """The settings that declare facts."""

    @property
    def hot_functions(self) -> tuple[str, ...]:
        """Functions that run in each step."""

    @property
    def cold_functions(self) -> tuple[str, ...]:
        """Functions that rarely run."""

    @property
    def sync_functions(self) -> tuple[str, ...]:
        """Functions that wait for the GPU."""

    @property
    def gpu_functions(self) -> tuple[str, ...]:
        """Functions that give a tensor on the GPU."""

    @property
    def sync_free_functions(self) -> tuple[str, ...]:
        """Functions that must not wait for the GPU."""

    @property
    def src(self) -> tuple[str, ...]:
        """The folders from which imports of the project start."""

    @property
    def root(self) -> str:
        """The folder of the project."""


@dataclass(frozen=True, slots=True)
class Declared:
    """The declarations of the settings.

    A name is the end of a full name, in whole parts: `step`, `Trainer.step` or `app.train.Trainer.step`. In a name, `*`
    stands for any characters but dots.
    """

    hot: tuple[str, ...] = ()
    cold: tuple[str, ...] = ()
    sync: tuple[str, ...] = ()
    gpu: tuple[str, ...] = ()
    sync_free: tuple[str, ...] = ()
    roots: tuple[Path, ...] = ()
    """The folders from which imports start, besides those that the files show; the innermost first."""

    @classmethod
    def of(cls, settings: Settings) -> Declared:
        """The declarations of some settings."""
        roots = {Path(os.path.normpath(os.path.join(settings.root, folder))) for folder in settings.src}
        return cls(
            settings.hot_functions,
            settings.cold_functions,
            settings.sync_functions,
            settings.gpu_functions,
            settings.sync_free_functions,
            tuple(sorted(roots, key=lambda root: (-len(root.parts), root))),
        )

    def waits(self, name: str) -> bool:
        """True if a function, by its full name, waits for the GPU."""
        return bool(self.sync and name) and _pattern(self.sync).fullmatch(_plain(name)) is not None

    def gives_gpu_tensor(self, name: str) -> bool:
        """True if a function, by its full name, gives a tensor on the GPU."""
        return bool(self.gpu and name) and _pattern(self.gpu).fullmatch(_plain(name)) is not None

    def is_sync_free(self, module: str, qualname: str) -> bool:
        """True if a function of the project must not wait for the GPU."""
        return bool(self.sync_free) and _pattern(self.sync_free).fullmatch(_plain(f"{module}.{qualname}")) is not None

    def heat(self, module: str, qualname: str) -> Heat | None:
        """How often a function runs; None if the settings do not say so. A function in both lists is hot."""
        if not self.hot and not self.cold:
            return None
        name = _plain(f"{module}.{qualname}")
        if _pattern(self.hot).fullmatch(name):
            return Heat.HOT
        return Heat.COLD if _pattern(self.cold).fullmatch(name) else None

    @property
    def key(self) -> str:
        """A text that differs if the declarations do."""
        return repr((self.hot, self.cold, self.sync, self.gpu, self.sync_free, self.roots))


def _plain(name: str) -> str:
    return name.replace(".<locals>", "")


@cache
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """The full names that end in one of some names."""
    return re.compile(rf"(?:.*\.)?(?:{'|'.join(map(_one, names))})" if names else r"(?!)")


def _one(name: str) -> str:
    return r"[^.]*".join(re.escape(part) for part in name.split("*"))
