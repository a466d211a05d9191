"""The modules of perflint, parsed once for all tests of a process."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import perflint

ROOT = Path(perflint.__file__).parent


def paths() -> list[str]:
    """The paths of all modules in the package."""
    return [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.rglob("*.py"))]


@cache
def trees() -> dict[str, ast.Module]:
    """The trees of all modules, by their paths in the package.

    One test looks at all of them: a test for each module would cost more than the look.
    """
    return {path: ast.parse((ROOT / path).read_text(encoding="utf-8")) for path in paths()}
