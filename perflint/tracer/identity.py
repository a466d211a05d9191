"""Notes about objects of the program, by their identity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar
from weakref import ref

V = TypeVar("V")


class ByIdentity(Generic[V]):
    """Values for objects as long as these live.

    A `WeakKeyDictionary` would ask the objects for a hash and for equality. A class of the program may define both, by
    attributes that an object gets later.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[ref[Any], V]] = {}

    def __setitem__(self, of: Any, value: V) -> None:
        number = id(of)
        self._entries[number] = ref(of, lambda _: self._entries.pop(number, None)), value

    def __contains__(self, of: Any) -> bool:
        return id(of) in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Any]:
        return (found for known, _ in tuple(self._entries.values()) if (found := known()) is not None)

    def get(self, of: Any) -> V | None:
        """The value for an object, or None."""
        entry = self._entries.get(id(of))
        return entry[1] if entry is not None else None

    def values(self) -> list[V]:
        """All values."""
        return [value for _, value in tuple(self._entries.values())]

    def clear(self) -> None:
        """Forget all."""
        self._entries.clear()
