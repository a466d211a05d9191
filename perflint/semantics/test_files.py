"""Files that belong to the tests of a project: their code checks results and runs once."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from perflint.config.disk import here
from perflint.semantics.structure import Structure


def is_test_path(path: Path, root: Path | None = None) -> bool:
    """True if the path alone shows a test file: by its name, or by a folder of tests around it.

    `root` is the folder that the file's imports start from.
    """
    return _is_named_so(path) or not {"test", "tests"}.isdisjoint(folders(path, root))


def is_among_tests(path: Path, root: Path | None) -> bool:
    """True if a file lies beside tests in `tests`, is `test/test_x.py`, or configures pytest."""
    around = folders(path, root)
    return path.name == "conftest.py" or "tests" in around or ("test" in around and _is_named_so(path))


def is_test_file(path: Path, root: Path | None, holds_tests: Callable[[], bool]) -> bool:
    """True if a file is a test as pytest and unittest find them, or lies among tests.

    `test_on_images.py`, which checks nothing, is a program: `holds_tests` tells, and is asked only where it matters.
    """
    return is_test_path(path, root) and (is_among_tests(path, root) or holds_tests())


def holds_tests(structure: Structure) -> bool:
    """True if a file asks for a library of tests, or has a `test_…` and asserts something."""
    imported = {alias.name for node in structure.every(ast.Import) for alias in node.names}
    modules = {node.module for node in structure.every(ast.ImportFrom)}
    if not {"pytest", "unittest"}.isdisjoint((*imported, *modules)):
        return True
    holds = any(info.name.startswith("test_") for info in structure.functions.values())
    return holds and bool(structure.every(ast.Assert))


def is_in_testing(path: Path, root: Path) -> bool:
    """True if a file is in a package or file named `testing`: helpers of tests, as in `torch.testing`."""
    return not {"testing", "testing_utils"}.isdisjoint({path.stem, *folders(path, root)})


def _is_named_so(path: Path) -> bool:
    return path.name.startswith("test_") or path.stem.endswith("_test") or path.name == "conftest.py"


def folders(path: Path, root: Path | None) -> tuple[str, ...]:
    """The folders around a file, inside the project: the folders above it may have any name."""
    parts = path.parts
    for top in (here(), *([] if root is None else [root.parent])):
        start = len(top.parts)
        if parts[:start] == top.parts:
            return parts[start:-1]
    return parts[-2:-1]
