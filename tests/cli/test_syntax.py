"""Code in the syntax of newer Pythons: read where Python reads it, and else an error that says what to do."""

from __future__ import annotations

import sys

import pytest

from tests.cli.command import Command

WAITS = "import torch\n\n\ndef f(x: torch.Tensor):\n    return x * torch.zeros(9, 9).to('cuda')\n\n\n"
SYNTAX = {
    "quotes in f-strings": (12, 'd = f"{WAITS["a"]} {"\\n".join([f"{1!r:>{3}}"])}"\n'),
    "comments in f-strings": (12, 'd = f"{\n    1  # one\n}"\n'),
    "functions with types": (12, "def g[T: int, *Ts, **P](x: T) -> T:\n    return x\n"),
    "names of types": (12, "type Pair[T] = tuple[T, T]\n"),
    "defaults of types": (13, "class A[T = int]: ...\n"),
    "except without parentheses": (14, "try:\n    pass\nexcept ValueError, TypeError:\n    pass\n"),
    "templates": (14, 'd = t"{WAITS}"\n'),
}


@pytest.mark.parametrize(("minor", "code"), SYNTAX.values(), ids=SYNTAX)
def test_newer_syntax(perflint: Command, minor: int, code: str) -> None:
    perflint.write("a.py", WAITS + code)
    perflint.write("b.py", WAITS)
    checked = perflint("check", ".", "--output-format=concise", "--profile=audit")
    fixed = perflint("fix", ".", "--apply", "--profile=audit")
    is_read = sys.version_info >= (3, minor)
    assert "b.py:5:16: TPF204" in checked.out and ("a.py:5:16: TPF204" in checked.out) == is_read
    running = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    assert (f"reads the syntax of {running}, which it runs on" in checked.err) != is_read
    assert (checked.code, fixed.code) == ((1, 0) if is_read else (2, 2))
    after = (perflint.folder / "a.py").read_text()
    assert after.endswith(code) and ("zeros(9, 9, device='cuda')" in after) == is_read
