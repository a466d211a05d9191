"""Functions that must not wait for the GPU: those that are marked `sync_free`, and those that the settings list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from types import CodeType, FrameType

from perflint.semantics.declared import Declared
from perflint.tracer.allow import promised
from perflint.tracer.places import Locator, Owner


class Promises:
    """Finds the function around a frame that must not wait."""

    def __init__(self, locator: Locator, listed: Sequence[str] = ()) -> None:
        self._locator = locator
        self._declared = Declared(sync_free=tuple(listed))
        self._known: dict[CodeType, bool] = {}

    def around(self, frame: FrameType | None) -> str:
        """The function that is marked `sync_free`, else the innermost one of the settings; empty without one."""
        marked = promised()
        if marked or not self._declared.sync_free:
            return marked
        while frame is not None:
            if self._is_listed(frame.f_code):
                return frame.f_code.co_qualname
            frame = frame.f_back
        return ""

    def _is_listed(self, code: CodeType) -> bool:
        known = self._known.get(code)
        if known is None:
            known = self._known[code] = self._locator.owner(code.co_filename) is Owner.USER and (
                self._declared.is_sync_free(self._module(code.co_filename), code.co_qualname)
            )
        return known

    def _module(self, path: str) -> str:
        """The module of a file, with the folders around its package: the settings give the end of a full name."""
        file = PurePath(self._locator.name(path))
        return ".".join(file.parent.parts if file.stem == "__init__" else (*file.parent.parts, file.stem))
