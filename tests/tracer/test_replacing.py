"""Attributes that are replaced for some time."""

from __future__ import annotations

from contextlib import ExitStack
from types import ModuleType
from typing import Any

import pytest

from perflint.tracer.replacing import replace


class Base:
    """Owns each kind of attribute."""

    def plain(self) -> str:
        return "own"

    @staticmethod
    def static() -> str:
        return "own"

    @classmethod
    def of_class(cls) -> str:
        return f"own of {cls.__name__}"


class Derived(Base):
    """Inherits them."""


def replaced() -> str:
    return "replaced"


@pytest.mark.parametrize("name", ["plain", "static", "of_class"])
def test_an_own_attribute_is_stored_as_before(name: str) -> None:
    before = vars(Base)[name]
    with ExitStack() as undo:
        replace(undo, Base, name, staticmethod(replaced))
        assert getattr(Base(), name)() == "replaced"
        assert vars(Base)[name] is not before
    assert vars(Base)[name] is before


def test_a_static_method_can_be_called_on_objects_afterwards() -> None:
    with ExitStack() as undo:
        replace(undo, Base, "static", staticmethod(replaced))
    assert Base().static() == "own"


@pytest.mark.parametrize("name", ["plain", "static", "of_class"])
def test_an_inherited_attribute_is_inherited_again(name: str) -> None:
    before = vars(Base)[name]
    with ExitStack() as undo:
        replace(undo, Derived, name, staticmethod(replaced))
        assert getattr(Derived(), name)() == "replaced"
        assert vars(Base)[name] is before
    assert name not in vars(Derived)
    assert Derived.of_class() == "own of Derived"


def test_a_function_of_a_module() -> None:
    module = ModuleType("module")
    original = module.__dict__["work"] = lambda: "own"
    with ExitStack() as undo:
        replace(undo, module, "work", replaced)
        assert module.work() == "replaced"
    assert module.work is original


def test_a_later_replacement_stays() -> None:
    class Owner(Base):
        """Gets two replacements."""

    def later(_: Owner) -> str:
        return "later"

    owner: Any = Owner
    with ExitStack() as undo:
        replace(undo, Owner, "plain", replaced)
        owner.plain = later
    assert vars(Owner)["plain"] is later


def test_an_attribute_that_was_deleted_meanwhile_stays_deleted() -> None:
    class Owner(Base):
        """Has a method of its own at first."""

        def plain(self) -> str:
            return "of Owner"

    with ExitStack() as undo:
        replace(undo, Owner, "plain", replaced)
        del Owner.plain
    assert Owner().plain() == "own"


def test_two_replacements_end_in_the_reverse_order() -> None:
    before = vars(Base)["plain"]
    with ExitStack() as undo:
        replace(undo, Base, "plain", replaced)
        replace(undo, Base, "plain", lambda _: "second")
        assert Base().plain() == "second"
    assert vars(Base)["plain"] is before
