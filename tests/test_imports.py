"""Imports go round in no circle, and each module can be imported first."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.test_layers import MODULES, imports, module_name

NAMES = {module_name(path): path for path in MODULES}
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


def imported_by(text: str, module: str, known: Mapping[str, object]) -> Iterator[str]:
    """The modules of perflint that a module imports at run time, inside functions too."""
    for _, name in imports(ast.parse(text), module):
        while name and name not in known:
            name = name.rpartition(".")[0]
        if name not in ("", "perflint", module):
            yield name


def circle(texts: Mapping[str, str]) -> list[str]:
    """The modules of one circle of imports; empty if there is none."""
    graph = {module: set(imported_by(text, module, texts)) for module, text in texts.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_imports_go_round_in_no_circle() -> None:
    assert not circle({module: path.read_text(encoding="utf-8") for module, path in NAMES.items()})


def test_the_test_of_circles() -> None:
    first, second = "from perflint import b", "def f():\n    from perflint.a import g"
    assert set(circle({"perflint.a": first, "perflint.b": second})) == {"perflint.a", "perflint.b"}
    assert not circle({"perflint.a": first, "perflint.b": f"if TYPE_CHECKING:\n    {first}"})
    assert not circle({"perflint.a": first, "perflint.b": "import ast"})


def packages() -> dict[str, list[str]]:
    """The modules of each package directly below perflint."""
    found: dict[str, list[str]] = {}
    for module in sorted(NAMES.keys() - PROGRAMS):
        found.setdefault(".".join(module.split(".")[:2]), []).append(module)
    return found


@pytest.mark.parametrize("package", packages())
def test_each_module_can_be_imported_first(package: str) -> None:
    # Earlier layers stay imported: they import nothing of this one.
    command = [sys.executable, "-c", ALONE, package, *packages()[package]]
    result = subprocess.run(command, capture_output=True, text=True)
    assert not result.stdout + result.stderr
    assert result.returncode == 0
