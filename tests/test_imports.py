"""Imports go round in no circle, and each module can be imported first."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.test_layers import imports, module_name
from tests.trees import paths, trees

PROGRAMS = {"perflint.__main__", "perflint.tracer.hook.sitecustomize"}
"""Modules that do their work when they are imported."""

ALONE = """
import importlib, sys
package = sys.argv[1]
for module in sys.argv[2:]:
    for name in [name for name in sys.modules if (name + ".").startswith(package + ".")]:
        del sys.modules[name]
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] == "perflint":
            print(f"{module}: {error}")
    except ImportError as error:
        print(f"{module}: {error}")
"""


def imported_by(tree: ast.Module, module: str, known: Mapping[str, object]) -> Iterator[str]:
    """The modules of perflint that a module imports at run time, inside functions too."""
    for _, name in imports(tree, module):
        while name and name not in known:
            name = name.rpartition(".")[0]
        if name not in ("", "perflint", module):
            yield name


def circle(known: Mapping[str, ast.Module]) -> list[str]:
    """The modules of one circle of imports; empty if there is none."""
    graph = {module: set(imported_by(tree, module, known)) for module, tree in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_imports_go_round_in_no_circle() -> None:
    assert not circle({module_name(path): tree for path, tree in trees().items()})


def test_imports_for_types_go_round_in_no_circle_below_the_model() -> None:
    """But for the sites of the model, which know it, and `nominate`, which makes them."""
    below = {module_name(path): tree for path, tree in trees().items() if path.startswith("semantics/")}
    for each in ("nominate", "sites"):
        del below[f"perflint.semantics.{each}"]
    for_types = {
        name: ast.parse(ast.unparse(tree).replace("if TYPE_CHECKING:", "if True:")) for name, tree in below.items()
    }
    assert len(below) > 150 and not circle(for_types)


def test_the_test_of_circles() -> None:
    first, second = "from perflint import b", "def f():\n    from perflint.a import g"

    def found(other: str) -> set[str]:
        return set(circle({"perflint.a": ast.parse(first), "perflint.b": ast.parse(other)}))

    assert found(second) == {"perflint.a", "perflint.b"}
    assert not found(f"if TYPE_CHECKING:\n    {first}")
    assert not found("import ast")


def packages() -> dict[str, list[str]]:
    """The modules of each package directly below perflint."""
    found: dict[str, list[str]] = {}
    for module in sorted({module_name(path) for path in paths()} - PROGRAMS):
        found.setdefault(".".join(module.split(".")[:2]), []).append(module)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("package", packages())
def test_each_module_can_be_imported_first(package: str) -> None:
    # Earlier layers stay imported: they import nothing of this one.
    command = [sys.executable, "-c", ALONE, package, *packages()[package]]
    result = subprocess.run(command, capture_output=True, text=True)
    assert not result.stdout + result.stderr
    assert result.returncode == 0
