"""The arguments of a call, as values."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from perflint.frozen import dataclass, replace
from perflint.semantics.values import NONE, UNKNOWN, Const, Tensor, Value


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call.

    `unpacked` says that `*args` or `**kwargs` may pass more; `rest` is the element of `*args`, `spread`
    the tensors of `**kwargs` whose names are not known. `names_all` says that all keywords are known still.
    """

    positional: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    unpacked: bool = False
    rest: Value = UNKNOWN
    spread: Tensor | None = None
    names_all: bool = False

    def at(self, position: int) -> Value:
        """A positional argument, UNKNOWN if there is none."""
        return self.positional[position] if position < len(self.positional) else UNKNOWN

    def keyword(self, name: str) -> Value | None:
        """A keyword argument."""
        for key, value in self.keywords:
            if key == name:
                return value
        return None

    def get(self, name: str, position: int | None) -> Value | None:
        """An argument by keyword or position."""
        found = self.keyword(name)
        if found is None and position is not None and position < len(self.positional):
            return self.positional[position]
        return found

    def has(self, name: str, position: int | None) -> bool:
        """True if an argument is given, and is neither None nor False."""
        value = self.get(name, position)
        return value is not None and value != NONE and value != Const(False)

    def literal(self, name: str, position: int | None) -> object:
        """The value of an argument that is a literal, or None if unknown."""
        value = self.get(name, position)
        return value.value if isinstance(value, Const) else None

    def mapped(self, change: Callable[[Value], Value]) -> Arguments:
        """The same call with each of its values changed."""
        positional = tuple(map(change, self.positional))
        keywords = tuple([(name, change(value)) for name, value in self.keywords])
        return replace(self, positional=positional, keywords=keywords, rest=change(self.rest))

    def values(self) -> Iterator[Value]:
        """All arguments."""
        yield from self.positional
        for _, value in self.keywords:
            yield value
