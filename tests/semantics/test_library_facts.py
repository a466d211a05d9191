"""The files of the libraries: their schema, and each entry against the installed library."""

from __future__ import annotations

import importlib
import importlib.util
import tomllib
import warnings
from types import ModuleType

import pytest

from perflint.semantics.facts import libraries
from perflint.semantics.facts.libraries import files, kinds
from perflint.semantics.facts.libraries.files import SchemaError, made_of
from perflint.semantics.interpreter import library_calls

PACKAGES = sorted(files.packages())
by_package = pytest.mark.parametrize("package", PACKAGES)

BROKEN = {
    "unknown table: function": '[function]\nint = "lib.f"',
    "unknown kind: tuple": '[functions]\ntuple = "lib.f"',
    "entry twice: lib.f": '[functions]\nint = "lib.f"\nstr = "lib.f"',
    "entry twice: lib.g": '[functions]\nint = "lib.g"\n[arrays]\n"first same" = "lib.g"',
    "entry twice: sum": '[classes."lib.C"]\nmethods.int = "sum sum"',
    "unknown kind: same first": '[arrays]\n"same first" = "lib.f"',
    "unknown kind: size int": '[numbers]\n"size int" = "lib.f"',
    "unknown key of lib.C: bases": '[classes]\n"lib.C" = { bases = "torch.nn.Module" }',
    "unknown kind of lib.C: list": '[classes]\n"lib.C" = { kind = "list" }',
    "unknown kind: tensor": '[classes."lib.C"]\nattributes.tensor = "data"',
    "attribute and method of lib.C: n": '[classes."lib.C"]\nattributes.int = "n"\nmethods.int = "n"',
    "name of another library: other.f": '[functions]\nint = "lib.f other.f"',
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_file_that_breaks_the_schema_is_refused(message: str) -> None:
    with pytest.raises(SchemaError, match=f"^{message}$"):
        made_of(tomllib.loads(BROKEN[message]), "lib")


@by_package
def test_each_file_keeps_to_the_schema_and_says_something(package: str) -> None:
    facts = files.library(package)
    assert facts.aliases or facts.classes or facts.functions or facts.below


def test_a_file_is_read_when_a_name_of_its_library_is_asked_for() -> None:
    files.library.cache_clear()
    assert libraries.returns("no_such_library.f") == ""
    assert libraries.returns("einops.pack") == "follow"
    assert libraries.returns("os.getcwd") == "str"
    # einops, the standard library, and the library without a file.
    assert files.library.cache_info().currsize == 3


def test_code_computes_exactly_the_results_that_the_files_leave_to_it() -> None:
    functions, methods = set[str](), set[str]()
    for package in PACKAGES:
        facts = files.library(package)
        functions |= {name for name, kind in facts.functions.items() if kind == kinds.CODE}
        for cls, held in facts.classes.items():
            methods |= {f"{cls}.{name}" for name, kind in held.methods.items() if kind == kinds.CODE}
    assert functions == set(library_calls.FUNCTIONS)
    # `module_calls` has the methods of modules.
    assert {name for name in methods if not name.startswith("torch.nn.Module.")} == set(library_calls.METHODS)


@by_package
def test_bases_and_aliases_lead_to_known_classes(package: str) -> None:
    facts = files.library(package)
    named = {name for held in facts.classes.values() for name in (held.base, held.like) if name}
    assert all(libraries.bases(name) or name in KNOWN for name in named)
    for target in facts.aliases.values():
        assert target not in facts.aliases


KNOWN = {"torch.nn.Module", "torch.Tensor", "torch.utils.data.DataLoader"}
"""Classes that the interpreter knows by themselves."""


# The installed libraries


@by_package
def test_each_entry_exists_in_the_installed_library(package: str) -> None:
    facts = files.library(package)
    skip_unless_installed(package)
    missing = [name for name in (*facts.functions, *facts.numbers, *facts.arrays) if not callable(found(name))]
    missing += [f"{name}.*" for name in facts.below if found(name) is None]
    for name, held in facts.classes.items():
        cls = found(name)
        missing += [name] if cls is None else []
        missing += [f"{name}.{attribute}" for attribute in held.attributes if not has(cls, attribute)]
        missing += [f"{name}.{method}" for method in held.methods if not callable(getattr(cls, method, None))]
    assert not missing


@by_package
def test_classes_derive_from_their_bases_in_the_installed_library(package: str) -> None:
    facts = files.library(package)
    skip_unless_installed(package)
    for name, held in facts.classes.items():
        cls, base = found(name), found(held.base) if held.base else object
        assert isinstance(cls, type) or not held.base
        assert not held.base or issubclass(cls, base), name
    for name, target in facts.aliases.items():
        # A version may have dropped a name.
        assert found(name) in (None, found(target)), name


def skip_unless_installed(package: str) -> None:
    if package != files.STDLIB:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pytest.importorskip(package, exc_type=ImportError)


def found(name: str) -> object | None:
    """The object of a full name, or None if the installed library does not have it."""
    top, *parts = name.split(".")
    with warnings.catch_warnings():
        # Old names of numpy warn.
        warnings.simplefilter("ignore")
        value: object | None = imported(top)
        for part in parts:
            top = f"{top}.{part}"
            value = getattr(value, part) if hasattr(value, part) else imported(top)
    return value


def imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        return None


def has(cls: object, name: str) -> bool:
    """True if a class has an attribute, declares it, or names it in its constructor."""
    declares = any(name in vars(each).get("__annotations__", {}) for each in getattr(cls, "__mro__", ()))
    return hasattr(cls, name) or declares or name in cls.__init__.__code__.co_names
