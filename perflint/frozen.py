"""Dataclasses without `dataclasses`: its import and its work for each class take a third of the time to start.

To the type checker this is `dataclasses`, and it alone sees to `frozen`: at run time nothing guards an assignment,
which also makes objects in half the time. `dataclasses.fields` and its like work on these classes, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field", "fields", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass, field, fields, replace
else:
    from collections.abc import Callable
    from operator import attrgetter

    _MISSING = object()

    class _Field:
        """A field of a dataclass, with the names of `dataclasses.Field`."""

        __slots__ = ("compare", "default", "default_factory", "init", "name", "repr")

        def __init__(self, default: Any, default_factory: Any, init: bool, repr: bool, compare: bool) -> None:
            self.name = ""
            self.default = default
            self.default_factory = default_factory
            self.init = init
            self.repr = repr
            self.compare = compare

    def field(
        *,
        default: Any = _MISSING,
        default_factory: Any = _MISSING,
        init: bool = True,
        repr: bool = True,
        compare: bool = True,
    ) -> Any:
        """A field with more than a default."""
        return _Field(default, default_factory, init, repr, compare)

    def fields(of: object) -> tuple[_Field, ...]:
        """The fields of a dataclass or an object of one, also of a class that `dataclasses` made."""
        known = getattr(of, "_fields_of_class", None)
        return tuple((of.__dataclass_fields__ if known is None else known).values())

    def replace(of: Any, /, **changes: Any) -> Any:
        """An object like another, with other values of some fields."""
        for each in fields(of):
            if each.init and each.name not in changes:
                changes[each.name] = getattr(of, each.name)
        return type(of)(**changes)

    def dataclass(*, frozen: bool = False, eq: bool = True, slots: bool = False) -> Callable[[type], type]:
        """Make a class a dataclass: only `__init__` is compiled, for the first object, the rest all classes share."""

        def make(cls: type) -> type:
            written = ("__init__", "__repr__", "__eq__", "__hash__")
            own = {name for name in written if vars(cls).get(name) is not None}
            found = _collected(cls)
            if slots:
                cls = _with_slots(cls, found)
            cls._fields_of_class = found
            cls.__dataclass_fields__ = _Described()
            compare, digest = _comparing([each.name for each in found.values() if each.compare])
            methods = {"__init__": _late(cls), "__repr__": _repr}
            if eq:
                methods |= {"__eq__": compare, "__hash__": digest if frozen else None}
            for name in methods.keys() - own:
                setattr(cls, name, methods[name])
            return cls

        return make

    def _collected(cls: type) -> dict[str, _Field]:
        """The fields of a class and its bases; removes from the class what `field` has put there."""
        found: dict[str, _Field] = {}
        for base in reversed(cls.__mro__[1:]):
            found |= vars(base).get("_fields_of_class", {})
        for name, annotation in cls.__annotations__.items():
            if str(annotation).startswith(("ClassVar", "typing.ClassVar")):
                continue
            given = vars(cls).get(name, _MISSING)
            made = given if isinstance(given, _Field) else field(default=given)
            made.name = name
            found[name] = made
            if made is given:
                if made.default is _MISSING:
                    delattr(cls, name)
                else:
                    setattr(cls, name, made.default)
        return found

    def _with_slots(cls: type, found: dict[str, _Field]) -> type:
        """The same class with a slot for each field of its own."""
        inherited = {name for base in cls.__mro__[1:] for name in vars(base).get("_fields_of_class", ())}
        namespace = {name: value for name, value in vars(cls).items() if name not in found}
        for name in ("__dict__", "__weakref__"):
            namespace.pop(name, None)
        namespace["__slots__"] = tuple(name for name in found if name not in inherited)
        made = type(cls)(cls.__name__, cls.__bases__, namespace)
        made.__qualname__ = cls.__qualname__
        return made

    class _Described:
        """The fields as `dataclasses` describes them, for code that asks."""

        def __get__(self, of: object, cls: type) -> dict[str, Any]:
            import dataclasses

            described: dict[str, Any] = {}
            for each in fields(cls):
                options = {name: getattr(each, name) for name in ("init", "repr", "compare")}
                for name in ("default", "default_factory"):
                    if getattr(each, name) is not _MISSING:
                        options[name] = getattr(each, name)
                described[each.name] = dataclasses.field(**options)
            written = [(name, Any, made) for name, made in described.items()]
            made = dataclasses.make_dataclass(cls.__name__, written, kw_only=True).__dataclass_fields__
            # Code that asks does so for each object.
            cls.__dataclass_fields__ = made
            return made

    def _late(cls: type) -> Callable[..., None]:
        """An `__init__` that replaces itself by the compiled one. Most classes that a run imports make no object."""

        def __init__(self: object, *values: Any, **named: Any) -> None:
            cls.__init__ = _compiled(cls)
            cls.__init__(self, *values, **named)

        return __init__

    def _compiled(cls: type) -> Callable[..., None]:
        known: dict[str, Any] = {"not_given": _MISSING}
        parameters, lines = ["self"], []
        for each in fields(cls):
            value, default = each.name, f"default_{each.name}"
            if each.default_factory is not _MISSING:
                known[default] = each.default_factory
                value = f"{default}() if {value} is not_given else {value}" if each.init else f"{default}()"
                parameters += [f"{each.name}=not_given"] if each.init else []
            elif each.default is not _MISSING:
                known[default] = each.default
                value = value if each.init else default
                parameters += [f"{each.name}={default}"] if each.init else []
            elif each.init:
                parameters.append(each.name)
            else:
                continue
            lines.append(f"self.{each.name} = {value}")
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        exec(f"def __init__({', '.join(parameters)}): {'; '.join(lines) or 'pass'}", known)
        made: Callable[..., None] = known["__init__"]
        return made

    def _repr(self: object) -> str:
        shown = [f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr]
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def _comparing(names: list[str]) -> tuple[Callable[[Any, Any], bool], Callable[[Any], int]]:
        """How objects compare, and hash, by some of their fields."""
        held = attrgetter(*names) if names else lambda _: ()

        def compare(self: object, other: object) -> bool:
            return held(self) == held(other) if other.__class__ is self.__class__ else NotImplemented

        def digest(self: object) -> int:
            return hash(held(self))

        return compare, digest
