"""The order of the layers and of the parts of semantics, and imports that are never allowed."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perflint.semantics.structure import children, walk
from tests.trees import ROOT, trees

LAYERS = (
    "frozen",
    "findings",
    "config",
    "source",
    "semantics",
    "fixes",
    "rules",
    "api",
    "engine",
    "testing",
    "tracer",
    "verify",
    "tune",
    "output",
    "integrations",
    "cli",
)
"""A module imports from its own layer and from those before it."""
OUTSIDE = {"libcst", "perflint", "platformdirs"}
"""What may be imported besides the standard library, anywhere."""
EXTRAS = {
    "engine": {"distributed"},
    "integrations": {"flake8", "mcp", "anyio", "pydantic", "pygls", "lsprotocol", "pytest", "torch"},
    "tracer": {"torch", "numpy"},
    "tune": {"torch"},
}
"""What some layers may also import, because they run only where it is."""
NEVER = ("libcst.metadata", "libcst.matchers", "libcst.codemod")
"""Each takes longer to import than most files take to check."""
FACE = {
    "callers": {"incoming", "kept", "summary"},
    "dataflow": {"definitions", "destinations", "flow", "origins", "scope_flow"},
    "heat": {"heat_map", "reasons", "steps", "training"},
    "regions": {"captured", "compile_calls", "compiled"},
    "explain": {"describe", "phrases", "reasons"},
    "purpose": {"evaluations", "frequency", "given", "need", "purpose", "takers", "unreached", "wholes", "words"},
}
"""The modules in folders of semantics that later layers may import, besides its flat modules and `facts`."""
ORDER = {
    "facts": 1,
    "view": 2,
    "changes": 2,
    "interpreter": 2,
    "callers": 3,
    "dataflow": 3,
    "heat": 3,
    "regions": 3,
    "explain": 3,
    "inferred": 3,
    "heated": 3,
    "model": 4,
    "around": 5,
    "purpose": 5,
}
"""The parts of semantics in the order of their imports; other flat modules, such as values, are at 0."""
EARLIER = {("perflint.semantics.scanning", "by_use")}
"""Imports against that order: `facts.by_use` needs no values, and scanning keeps the uses of names with it."""
LONGEST = 550
"""Lines of a module: about 500."""


def imports(tree: ast.Module, module: str) -> Iterator[tuple[int, str]]:
    """The lines and full names of what a module imports, inside functions too, but not for type checkers."""
    package = module if module == "perflint" or is_package(module) else module.rpartition(".")[0]
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            # The name may be a submodule.
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        else:
            pending.extend(children(node))


def is_package(module: str) -> bool:
    """True if a module of perflint is a package."""
    return (ROOT.parent / Path(*module.split(".")) / "__init__.py").is_file()


def module_name(path: str) -> str:
    """The full name of the module at a path in the package."""
    parts = ("perflint", *Path(path).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(module: str) -> int | None:
    """The position of a module's layer; None for `perflint` itself."""
    parts = module.split(".")
    if len(parts) == 1 or parts[1].startswith("__version"):
        return None
    return len(LAYERS) if parts[1] == "__main__" else LAYERS.index(parts[1])


def faults(tree: ast.Module, module: str) -> list[str]:
    """What is wrong with a module's imports."""
    own = layer(module)
    found = []
    for line, name in imports(tree, module):
        top = name.split(".")[0]
        extras = EXTRAS.get(module.split(".")[1], set()) if own is not None else set()
        if name.startswith(NEVER):
            found.append(f"line {line}: {name} is never to be imported")
        elif top == "perflint":
            other = layer(name)
            if other is not None and (own is None or other > own):
                found.append(f"line {line}: {name} is of a later layer")
            if not _is_allowed_in_semantics(module, name):
                found.append(f"line {line}: {name} is an inner module of semantics, or a later part of it")
        elif top not in sys.stdlib_module_names and top not in OUTSIDE | extras:
            found.append(f"line {line}: {name} is no dependency")
    return found


def _is_allowed_in_semantics(module: str, name: str) -> bool:
    """False if a module outside imports an inner module of semantics, or one inside imports a later part."""
    parts = name.split(".")
    if parts[1:2] != ["semantics"] or len(parts) < 3:
        return True
    folder, inner = parts[2], parts[3] if len(parts) > 3 else ""
    if module.startswith("perflint.semantics."):
        own = ORDER.get(module.split(".")[2], 0)
        return ORDER.get(folder, 0) <= own or (module, inner) in EARLIER
    if not (ROOT / "semantics" / folder).is_dir() or folder == "facts":
        return True
    return inner in FACE.get(folder, ())


def test_modules_import_only_from_their_layer_and_earlier_ones() -> None:
    assert not [f"{path}: {fault}" for path, tree in trees().items() for fault in faults(tree, module_name(path))]


def test_libcst_is_never_imported_at_the_top() -> None:
    assert not [
        f"{path}:{line}"
        for path, tree in trees().items()
        # Its text goes into programs.
        if not (path.startswith("tune/graphs/") and path.endswith("helper.py"))
        for statement in tree.body
        if isinstance(statement, (ast.Import, ast.ImportFrom))
        for line, name in imports(ast.Module([statement], []), module_name(path))
        if name.split(".")[0] in ("libcst", "torch", "numpy")
    ]


def test_no_rule_imports_another_rule() -> None:
    """What two rules ask is a helper, whose name begins with `_`. TPF705 joins all kinds of breaks of graphs."""
    rules = {module_name(path) for path in trees() if re.fullmatch(r"rules/[a-z]\w*/[a-z]\w*\.py", path)}
    found = {
        module_name(path)
        for path, tree in trees().items()
        for _, name in imports(tree, module_name(path))
        if module_name(path) in rules and (name in rules or name.rpartition(".")[0] in rules)
    }
    assert found == {"perflint.rules.compile.break_in_loop"}


def test_no_module_is_too_long() -> None:
    lengths = {path: path.read_text(encoding="utf-8").count("\n") for path in ROOT.rglob("*.py")}
    assert not {path: length for path, length in lengths.items() if length > LONGEST}


def test_only_one_place_catches_every_exception() -> None:
    exits, broad = [], []
    for path, tree in trees().items():
        for node in walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == "__exit__":
                exits.append(path)
            elif isinstance(node, ast.ExceptHandler) and _is_broad(node):
                broad.append(f"{path}:{node.lineno}")
    assert exits == ["engine/crashes.py"]
    assert not broad


def _is_broad(handler: ast.ExceptHandler) -> bool:
    every = handler.type is None or ast.unparse(handler.type) in ("Exception", "BaseException")
    return every and not _raises_again(handler)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def test_the_design_has_the_layers_in_order() -> None:
    text = " ".join((ROOT.parent / "docs" / "design.md").read_text(encoding="utf-8").split())
    assert f"layers to its left: {', '.join(LAYERS)}. " in text


def test_every_folder_is_a_layer() -> None:
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and (path / "__init__.py").is_file()}
    assert folders <= set(LAYERS)


CASES = [
    ("perflint.rules.sync.a", "from perflint.semantics.sites import Site", True),
    ("perflint.rules.sync.a", "from perflint.rules._helper import x", True),
    ("perflint.rules.sync.a", "from perflint import findings", True),
    ("perflint.rules.sync.a", "from perflint import __version__", True),
    ("perflint.rules.sync.a", "from perflint import engine", False),
    ("perflint.rules.sync.a", "import perflint.engine.file", False),
    ("perflint.rules.sync.a", "def f():\n    from perflint.cli import main", False),
    ("perflint.rules.sync.a", "from ...output import json", False),
    ("perflint.rules.sync.a", "from .. import registry", True),
    ("perflint.rules.sync.a", "if TYPE_CHECKING:\n    from perflint.engine.file import x", True),
    ("perflint.rules.sync.a", "if TYPE_CHECKING:\n    pass\nelse:\n    from perflint.engine.file import x", False),
    ("perflint.rules.sync.a", "from perflint.semantics.facts import torch_api", True),
    ("perflint.rules.sync.a", "from perflint.semantics.facts.devices import unified", True),
    ("perflint.rules.sync.a", "from perflint.semantics.heat.steps import stepping", True),
    ("perflint.rules.sync.a", "from perflint.semantics.heat import guards", False),
    ("perflint.rules.sync.a", "from perflint.semantics.interpreter.frame import Frame", False),
    ("perflint.rules.sync.a", "import perflint.semantics.interpreter.frame", False),
    ("perflint.cli.a", "def f():\n    from perflint.semantics.interpreter import frame", False),
    ("perflint.semantics.facts.a", "from perflint.semantics.interpreter.frame import Frame", False),
    ("perflint.semantics.facts.a", "from perflint.semantics.structure import FunctionInfo", True),
    ("perflint.semantics.scanning", "from perflint.semantics.facts import by_use", True),
    ("perflint.semantics.structure", "from perflint.semantics.facts import tensors", False),
    ("perflint.semantics.project", "from perflint.semantics.heat.steps import stepping", False),
    ("perflint.semantics.interpreter.a", "from perflint.semantics.model import Model", False),
    ("perflint.semantics.heat.a", "from perflint.semantics.model import Model", False),
    ("perflint.semantics.heat.a", "from perflint.semantics.explain.phrases import quote", True),
    ("perflint.semantics.model", "from perflint.semantics.heat import guards", True),
    ("perflint.rules.sync.a", "import torch", False),
    ("perflint.rules.sync.a", "import libcst.matchers as m", False),
    ("perflint.rules.sync.a", "from libcst import metadata", False),
    ("perflint.rules.sync.a", "import ast, json", True),
    ("perflint.findings", "from perflint.config import settings", False),
    ("perflint.integrations.flake8", "import flake8", True),
    ("perflint.engine.file", "import flake8", False),
    ("perflint", "from perflint.findings import Span", False),
    ("perflint.__main__", "from perflint.cli.main import main", True),
]


@pytest.mark.parametrize(("module", "text", "good"), CASES)
def test_the_test(module: str, text: str, good: bool) -> None:
    assert (not faults(ast.parse(text), module)) is good
