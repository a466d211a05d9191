"""Dataclasses that are made in a fraction of the time, since starting takes longer than checking a small file.

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
        """Make a class a dataclass: only `__init__` is compiled, for the first object, the rest all classes share."""

        def make(cls: type) -> type:
            written = ("__init__", "__repr__", "__eq__", "__hash__")
            own = {name for name in written if vars(cls).get(name) is not None}
            cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
            compare, digest = _comparing([field.name for field in dataclasses.fields(cls) if field.compare])
            methods = {"__init__": _late(cls), "__repr__": _repr}
            if eq:
                methods |= {"__eq__": compare, "__hash__": digest if frozen else None}
            for name in methods.keys() - own:
                setattr(cls, name, methods[name])
            return cls

        return make

    def _late(cls: type) -> Callable[..., None]:
        """An `__init__` that replaces itself by the compiled one. Most classes that a run imports make no object."""

        def __init__(self: object, *values: Any, **named: Any) -> None:
            cls.__init__ = _compiled(cls)
            cls.__init__(self, *values, **named)

        return __init__

    def _compiled(cls: type) -> Callable[..., None]:
        known: dict[str, Any] = {"not_given": object()}
        parameters, lines = ["self"], []
        for field in dataclasses.fields(cls):
            value, default = field.name, f"default_{field.name}"
            if field.default_factory is not dataclasses.MISSING:
                known[default] = field.default_factory
                value = f"{default}() if {value} is not_given else {value}" if field.init else f"{default}()"
                parameters += [f"{field.name}=not_given"] if field.init else []
            elif field.default is not dataclasses.MISSING:
                known[default] = field.default
                value = value if field.init else default
                parameters += [f"{field.name}={default}"] if field.init else []
            elif field.init:
                parameters.append(field.name)
            else:
                continue
            lines.append(f"self.{field.name} = {value}")
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        exec(f"def __init__({', '.join(parameters)}): {'; '.join(lines) or 'pass'}", known)
        made: Callable[..., None] = known["__init__"]
        return made

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
