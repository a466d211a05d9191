"""A sample of many long cases. It changes with the product, so that each case runs after some of its changes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

import perflint


@cache
def version() -> int:
    """A number that changes with each change of the product's files."""
    number = 0
    for path in sorted(Path(perflint.__file__).parent.rglob("*")):
        if path.suffix in (".py", ".toml"):
            number = crc32(path.read_bytes(), number)
    return number


def sample(cases: Iterable[object], every: int) -> list[object]:
    """Cases as parameters of a test: one of `every` runs, and with `--slow` all of them."""
    return [
        case if (at + version()) % every == 0 else pytest.param(case, marks=pytest.mark.slow)
        for at, case in enumerate(cases)
    ]
