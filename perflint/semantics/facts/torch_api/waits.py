"""The operators that make the CPU wait by themselves, of torch (the generated `waits.toml`) and of libraries."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from perflint.frozen import dataclass
from perflint.semantics.facts import tables, torch_api


class Argument(NamedTuple):
    """An argument of a call, by keyword or by position; "self" is the object of the call."""

    name: str
    position: int | None = None


class Requirement(NamedTuple):
    """A condition on an argument of a call.

    absent: the argument is not passed, or is None; otherwise it is passed, and is neither None nor False.
    field: the condition is about this argument of the constructor of the argument, which is an object; "" if it is not.
    at: the position of this argument.
    value: the literal that it must be, as code; empty if any will do.
    unless: it may be absent or any other value than this literal, but it must be known.
    """

    argument: Argument
    absent: bool = False
    field: str = ""
    value: str = ""
    unless: bool = False
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """An operator that makes the CPU wait.

    name: its full name.
    of: the class of the object that it is a method of, where that matters.
    operand: the argument that makes it wait if it is on the device; None if there is no such argument.
    when: the conditions on other arguments, which must all be met.
    why: "size" (only the device knows the size of the result), "check" (it looks whether its arguments are
        allowed), "copy" (it copies between host and device), "read" (it reads while it works), "loops" (it looks for
        self loops of a graph), "edges" (it keeps some of the edges or nodes of a graph), "nan" (it looks for NaNs) or
        "values" (it checks the values of its arguments).
    """

    name: str
    of: str
    operand: Argument | None
    when: tuple[Requirement, ...]
    why: str


@cache
def waits() -> dict[str, tuple[Wait, ...]]:
    """The operators by full name, each with all the ways in which it may wait."""
    found: dict[str, list[Wait]] = {}
    of_libraries = tables.table(Path(__file__).parents[1] / "library_waits.toml")
    methods = [method for row in of_libraries["methods"] for method in _methods(row)]
    for row in (*torch_api.table("waits")["operators"], *of_libraries["operators"], *methods):
        found.setdefault(row["name"], []).append(_wait(row))
    return {name: tuple(rows) for name, rows in found.items()}


def _methods(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each method of each class, and for each operand."""
    for cls, method, operand in product(*(row[key].split() for key in ("of", "names", "operand"))):
        of = f"{row['home']}.{cls}"
        name = "torch.nn.Module.__call__" if method == "__call__" else f"{of}.{method}"
        yield {**row, "of": of, "name": name, "operand": operand}


def _wait(row: dict[str, Any]) -> Wait:
    operand = _argument(row["operand"]) if "operand" in row else None
    return Wait(row["name"], row.get("of", ""), operand, tuple(map(_requirement, row.get("when", ()))), row["why"])


def _requirement(text: str) -> Requirement:
    """Read "mask@1", "!size@2", "enforce_sorted@3=False", "self.momentum@1=None" and "self.cached!=True"."""
    text, _, value = text.partition("=")
    unless = text.endswith("!")
    text = text.removesuffix("!")
    argument, _, field = text.removeprefix("!").partition(".")
    given = _argument(field)
    return Requirement(_argument(argument), text.startswith("!"), given.name, value, unless, given.position)


def _argument(text: str) -> Argument:
    name, _, position = text.partition("@")
    return Argument(name, int(position) if position else None)
