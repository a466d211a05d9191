"""The file of each library: read when a name of the library is first asked for, and checked against the schema.

A file is named after the package that it is imported by; `stdlib.toml` holds the modules of Python. Names are full
names. The tables of a file:

- `[aliases]`: the name of a class that is exported again = the name in the facts;
- `[classes]`: the name of a class = its `base` among the classes of the facts, or a class of torch that its objects
  are `like`, its `kind`, and its `attributes` and `methods`, each by the kind of their values; `package.*` stands for
  all other classes below it;
- `[functions]`: the kind of the results = functions, or `package.*` for all functions below it; a kind that is the
  name of a class stands for an object of it;
- `[numbers]` and `[arrays]`: functions of arrays by rules that `arrays.py` applies.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Container, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from perflint.frozen import dataclass
from perflint.semantics.facts import arrays
from perflint.semantics.facts.libraries.kinds import ATTRIBUTES, CLASSES, CODE, RESULTS
from perflint.semantics.facts.tables import table

STDLIB = "stdlib"
_Fact = TypeVar("_Fact")


@dataclass(frozen=True, slots=True)
class LibraryClass:
    """A class of a library: `attributes` and `methods` are the kinds of their values by name."""

    base: str
    like: str
    kind: str
    attributes: dict[str, str]
    methods: dict[str, str]


@dataclass(frozen=True, slots=True)
class Library:
    """The facts about one library, by full names.

    classes_below: the facts about all other classes below a module.
    below: the kinds of the results of all functions below a module.
    """

    aliases: dict[str, str]
    classes: dict[str, LibraryClass]
    classes_below: dict[str, LibraryClass]
    functions: dict[str, str]
    below: dict[str, str]
    numbers: dict[str, str]
    arrays: dict[str, str]


class SchemaError(ValueError):
    """A file of a library has an entry that the schema does not allow."""


@cache
def packages() -> frozenset[str]:
    """The names of all files."""
    return frozenset(path.stem for path in Path(__file__).parent.glob("*.toml"))


def of(name: str) -> Library:
    """The library that a full name belongs to; one without facts if it has no file."""
    top = name.partition(".")[0]
    return library(STDLIB if top in sys.stdlib_module_names else top)


@cache
def library(package: str) -> Library:
    """The facts of a file."""
    if package not in packages():
        return _NOTHING
    return made_of(table(Path(__file__).with_name(f"{package}.toml")), package)


_NOTHING = Library({}, {}, {}, {}, {}, {}, {})


def made_of(tables: dict[str, Any], package: str) -> Library:
    """The facts of the tables of a file. Raises SchemaError for tables that break the schema."""
    _among(tables, _TABLES, "table")
    classes = {name: _class(name, held) for name, held in tables.get("classes", {}).items()}
    functions = dict(_by_name(tables.get("functions", {}), _is_result))
    made = Library(
        tables.get("aliases", {}),
        *_apart(classes),
        *_apart(functions),
        dict(_by_name(tables.get("numbers", {}), arrays.is_number_rule)),
        dict(_by_name(tables.get("arrays", {}), arrays.is_array_rule)),
    )
    _check_names(made, package)
    return made


def _apart(facts: dict[str, _Fact]) -> tuple[dict[str, _Fact], dict[str, _Fact]]:
    """The facts about single names, and those about all names below a module."""
    below = {name.removesuffix(".*"): fact for name, fact in facts.items() if name.endswith(".*")}
    return {name: fact for name, fact in facts.items() if not name.endswith(".*")}, below


_TABLES = frozenset("aliases classes functions numbers arrays".split())


def _class(name: str, held: dict[str, Any]) -> LibraryClass:
    _among(held, ("base", "like", "kind", "attributes", "methods"), f"key of {name}")
    kind = held.get("kind", "")
    _among([kind] if kind else [], CLASSES, f"kind of {name}")
    attributes = dict(_by_name(held.get("attributes", {}), ATTRIBUTES.__contains__))
    methods = dict(_by_name(held.get("methods", {}), _is_result))
    for both in attributes.keys() & methods.keys():
        raise SchemaError(f"attribute and method of {name}: {both}")
    return LibraryClass(held.get("base", ""), held.get("like", ""), kind, attributes, methods)


def _is_result(kind: str) -> bool:
    return kind in RESULTS or kind == CODE or kind.rpartition(".")[2][:1].isupper()


def _by_name(table: dict[str, str], is_kind: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """Names with their kinds, from a table of names by kinds."""
    seen: set[str] = set()
    for kind, names in table.items():
        if not is_kind(kind):
            raise SchemaError(f"unknown kind: {kind}")
        for name in names.split():
            if name in seen:
                raise SchemaError(f"entry twice: {name}")
            seen.add(name)
            yield name, kind


def _among(found: Collection[str], allowed: Container[str], noun: str) -> None:
    for each in found:
        if each not in allowed:
            raise SchemaError(f"unknown {noun}: {each}")


def _check_names(made: Library, package: str) -> None:
    """Raise SchemaError for a name of another library, or one that stands in two tables."""
    tables = (made.aliases, made.classes, made.functions, made.numbers, made.arrays)
    seen: set[str] = set()
    for name in (name for each in (*tables, made.classes_below, made.below) for name in each):
        top = name.partition(".")[0]
        if top != package and not (package == STDLIB and top in sys.stdlib_module_names):
            raise SchemaError(f"name of another library: {name}")
        if name in seen:
            raise SchemaError(f"entry twice: {name}")
        seen.add(name)
