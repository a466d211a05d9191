"""The quicker dataclasses behave as those of the standard library do."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from perflint import frozen

OPTIONS: list[dict[str, Any]] = [
    {"frozen": True, "slots": True},
    {"slots": True},
    {"slots": True, "eq": False},
    {"frozen": True, "eq": False},
]


def made(module: Any, options: dict[str, Any]) -> Any:
    @module.dataclass(**options)
    class Point:
        """A point."""

        x: int
        names: list[str] = module.field(default_factory=list, compare=False)
        note: str = module.field(default="", repr=False)

    return Point


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_like_the_original(options: dict[str, Any]) -> None:
    quick, original = made(frozen, options), made(dataclasses, options)
    results = []
    for module, cls in ((frozen, quick), (dataclasses, original)):
        one, same, other = cls(1, ["a"]), cls(1), cls(1, note="b")
        results.append(
            (
                repr(one),
                one == same,
                one == other,
                one == 1,
                cls.__hash__ is not None and hash(one) == hash(same),
                repr(dataclasses.replace(one, x=2)),
                repr(module.replace(one, x=2)),
                [(each.name, each.init, each.repr, each.compare) for each in dataclasses.fields(one)],
                dataclasses.asdict(one),
                hasattr(one, "__dict__"),
            )
        )
    assert results[0] == results[1]


def test_a_class_is_described_once() -> None:
    cls = made(frozen, {})
    assert dataclasses.fields(cls)[0] is dataclasses.fields(cls(1))[0]


def test_own_methods_stay() -> None:
    @frozen.dataclass(frozen=True, slots=True)
    class Parity:
        """A number of which only the parity matters."""

        value: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Parity) and (self.value - other.value) % 2 == 0

        def __hash__(self) -> int:
            return self.value % 2

        def __repr__(self) -> str:
            return "odd" if self.value % 2 else "even"

    assert Parity(1) == Parity(3)
    assert hash(Parity(1)) == hash(Parity(3)) == 1
    assert repr(Parity(4)) == "even"


def test_what_holds_nothing() -> None:
    @frozen.dataclass(frozen=True, slots=True)
    class Nothing:
        """No fields."""

    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())
    assert repr(Nothing()).endswith("Nothing()")


def test_fields_that_are_no_arguments() -> None:
    def counted(module: Any) -> Any:
        @module.dataclass(slots=True)
        class Counted:
            """A list and its length."""

            items: list[int] = module.field(default_factory=list)
            seen: set[int] = module.field(default_factory=set, init=False)
            kind: str = module.field(default="list", init=False)
            length: int = module.field(init=False, repr=False)

            def __post_init__(self) -> None:
                self.length = len(self.items)

        return Counted

    quick, original = counted(frozen), counted(dataclasses)
    for values in ((), ([1, 2],)):
        one, other = quick(*values), original(*values)
        assert repr(one) == repr(other)
        assert (one.length, one.seen, one.kind) == (other.length, other.seen, other.kind)
    assert quick().items is not quick().items
    with pytest.raises(TypeError):
        quick([1], {2})


def test_a_class_with_a_base() -> None:
    @frozen.dataclass(slots=True)
    class Base:
        """One field."""

        x: int

    @frozen.dataclass(slots=True)
    class Derived(Base):
        """Two fields."""

        y: int = 2

    class Plain(Base):
        """No field of its own."""

    assert (Derived(1).x, Derived(1).y, Plain(3).x, Base(4).x) == (1, 2, 3, 4)


def test_an_own_constructor_stays() -> None:
    @frozen.dataclass(frozen=True, slots=True)
    class Doubled:
        """Twice a number."""

        value: int

        def __init__(self, half: int) -> None:
            object.__setattr__(self, "value", 2 * half)

    assert Doubled(2).value == 4


def test_classes_of_the_standard_library_are_copied_and_described_too() -> None:
    @dataclasses.dataclass(frozen=True)
    class Pair:
        """Two numbers."""

        x: int
        y: int = 2

    assert frozen.replace(Pair(1), x=3) == Pair(3)
    assert [each.name for each in frozen.fields(Pair)] == ["x", "y"]
