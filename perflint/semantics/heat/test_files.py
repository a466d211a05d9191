"""Whether a file belongs to the tests of a project: its work is to be right, once."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perflint.semantics.project import Module


def is_test_path(path: Path, root: Path | None = None) -> bool:
    """Whether a file is one of tests by its path alone: its name, or a folder of tests that it lies in.

    `root` is the folder that the file's imports start from.
    """
    return _is_named_so(path) or not {"test", "tests"}.isdisjoint(_folders(path, root))


def is_test_file(module: Module) -> bool:
    """Whether a file is one of tests, as pytest and unittest look for them, or lies beside them in `tests`.

    `test_on_images.py` and `test/run.py` that neither have a `test_…` and assert anything nor ask for a library
    of tests are programs.
    """
    if module.path.name == "conftest.py" or "tests" in _folders(module.path, module.root):
        return True
    return is_test_path(module.path, module.root) and _holds_tests(module)


def _is_named_so(path: Path) -> bool:
    return path.name.startswith("test_") or path.stem.endswith("_test") or path.name == "conftest.py"


def _folders(path: Path, root: Path | None) -> tuple[str, ...]:
    """The folders around a file, as far as they say something: those above the project may have any name."""
    for top in (Path.cwd(), *([] if root is None else [root.parent])):
        if path.is_relative_to(top):
            return path.relative_to(top).parts[:-1]
    return path.parts[-2:-1]


def _holds_tests(module: Module) -> bool:
    nodes = module.structure.nodes
    imported = {alias.name for node in nodes.get(ast.Import, ()) for alias in node.names}  # type: ignore[attr-defined]
    imported |= {node.module for node in nodes.get(ast.ImportFrom, ())}  # type: ignore[attr-defined]
    if not imported.isdisjoint(("pytest", "unittest")):
        return True
    holds = any(info.name.startswith("test_") for info in module.structure.functions.values())
    return holds and bool(nodes.get(ast.Assert))
