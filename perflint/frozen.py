"""Dataclasses that are made in a third of the time, since starting takes longer than checking a small file.

To the type checker this is `dataclasses.dataclass`, and it alone sees to `frozen`: at run time
nothing guards an assignment, which also makes objects in half the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses
    from collections.abc import Callable
    from operator import attrgetter

    def dataclass(*, frozen: bool = False, eq: bool = True, slots: bool = False) -> Callable[[type], type]:
        """Make a class a dataclass: only `__init__` is compiled for it, the rest it shares with all others."""

        def make(cls: type) -> type:
            own = {name for name in ("__repr__", "__eq__", "__hash__") if vars(cls).get(name) is not None}
            cls = dataclasses.dataclass(repr=False, eq=False, slots=slots)(cls)
            compare, digest = _comparing([field.name for field in dataclasses.fields(cls) if field.compare])
            methods = {"__repr__": _repr}
            if eq:
                methods |= {"__eq__": compare, "__hash__": digest if frozen else None}
            for name in methods.keys() - own:
                setattr(cls, name, methods[name])
            return cls

        return make

    def _repr(self: object) -> str:
        shown = [f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr]
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def _comparing(names: list[str]) -> tuple[Callable[[Any, Any], bool], Callable[[Any], int]]:
        """How objects compare, and hash, by some of their fields."""
        held = attrgetter(*names) if names else lambda _: ()

        def compare(self: object, other: object) -> bool:
            return held(self) == held(other) if other.__class__ is self.__class__ else NotImplemented

        def digest(self: object) -> int:
            return hash(held(self))

        return compare, digest
