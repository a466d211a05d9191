"""Files that belong to the tests of a project: their code checks results and runs once."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from perflint.config.disk import here

if TYPE_CHECKING:
    from perflint.semantics.module import Module


def is_test_path(path: Path, root: Path | None = None) -> bool:
    """True if the path alone shows a test file: by its name, or by a folder of tests around it.

    `root` is the folder that the file's imports start from.
    """
    return _is_named_so(path) or not {"test", "tests"}.isdisjoint(folders(path, root))


def is_test_file(module: Module) -> bool:
    """True if a file is a test as pytest and unittest find them, lies beside tests in `tests`, or is `test/test_x.py`.

    `test_on_images.py` and `test/run.py` that neither have a `test_…` and assert anything nor ask for a library
    of tests are programs.
    """
    around = folders(module.path, module.root)
    if module.path.name == "conftest.py" or "tests" in around or ("test" in around and _is_named_so(module.path)):
        return True
    return is_test_path(module.path, module.root) and _holds_tests(module)


def serves_tests(module: Module) -> bool:
    """True if a file is a test, or is in a package or file named `testing`: helpers of tests, as in `torch.testing`."""
    named = {module.path.stem, *folders(module.path, module.root)}
    return module.is_of_tests or not {"testing", "testing_utils"}.isdisjoint(named)


def _is_named_so(path: Path) -> bool:
    return path.name.startswith("test_") or path.stem.endswith("_test") or path.name == "conftest.py"


def folders(path: Path, root: Path | None) -> tuple[str, ...]:
    """The folders around a file, inside the project: the folders above it may have any name."""
    for top in (here(), *([] if root is None else [root.parent])):
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
