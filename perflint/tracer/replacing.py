"""Attributes of classes and modules that the tracer replaces for some time."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

_INHERITED = object()


def replace(undo: ExitStack, owner: Any, name: str, value: Any) -> None:
    """Replace an attribute of a class or a module until `undo` closes.

    A later replacement by the program or another library stays.
    """
    # As it is stored: `getattr` would give the function of a static method.
    original = vars(owner).get(name, _INHERITED)

    def restore() -> None:
        if vars(owner).get(name) is not value:
            return
        if original is _INHERITED:
            delattr(owner, name)
        else:
            setattr(owner, name, original)

    setattr(owner, name, value)
    undo.callback(restore)
