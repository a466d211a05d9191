"""What deleted code leaves behind goes with it."""

from __future__ import annotations

import ast

import pytest

from perflint.findings import Edit, Span
from perflint.fixes.leftovers import tidied, without_unused_imports
from perflint.fixes.rewrite import rewrite
from perflint.source.text import Source


def without(text: str, word: str) -> str:
    """A text without its lines that hold a word."""
    source = Source("a.py", text)
    lines = [number for number, line in enumerate(source.lines, 1) if word in line]
    edits = [Edit(Span(number, 1, number + 1, 1), "") for number in lines]
    return tidied(source, rewrite(source, edits)).text


BLOCKS = [
    # A comment above what is gone, and nothing below.
    ("def f():\n    a()\n    # Free it\n    gone()\n", "def f():\n    a()\n"),
    ("def f():\n    a()\n    # Free\n    # it\n    gone()\n\n    b()\n", "def f():\n    a()\n\n    b()\n"),
    ("def f():\n    a()\n    # Free it\n    gone(1)\n    gone(2)\nb()\n", "def f():\n    a()\nb()\n"),
    # It may be about what follows as well.
    ("def f():\n    # Free it\n    gone()\n    b()\n", "def f():\n    # Free it\n    b()\n"),
    # Comments of another depth, for tools, and of the top level.
    ("def f():\n    if a:\n        b()\n        # b\n    gone()\n", "def f():\n    if a:\n        b()\n        # b\n"),
    ("def f():\n    a()\n    # fmt: on\n    gone()\n", "def f():\n    a()\n    # fmt: on\n"),
    ("# Copyright\ngone()\n\na()\n", "# Copyright\n\na()\n"),
    # Blank lines.
    ("def f():\n    a()\n\n    gone()\n\n    b()\n", "def f():\n    a()\n\n    b()\n"),
    ("def f():\n    a()\n\n    # Free it\n    gone()\n\n    b()\n", "def f():\n    a()\n\n    b()\n"),
    ("a()\n\n\ngone()\n\n\nb()\n", "a()\n\n\nb()\n"),
    ("a()\n\n\ngone()\nb()\n", "a()\n\n\nb()\n"),
    ("a()\n\ngone()\n", "a()\n"),
    ("def f():\n    a()\r\n    # Free it\r\n    gone()\r\n", "def f():\n    a()\r\n"),
]


@pytest.mark.parametrize(("before", "after"), BLOCKS)
def test_comments_and_blank_lines(before: str, after: str) -> None:
    assert without(before, "gone") == after


def imports_of(before: str, after: str, *taken: str) -> str:
    """The text after without the imports that it does not need any more."""
    changed = without_unused_imports(Source("a.py", before), Source("a.py", after), lambda name: name in taken).text
    ast.parse(changed)
    return changed


IMPORTS = [
    ("import gc\n", "gc.collect()\n", ""),
    ("import gc, os\n", "gc.collect()\nos.getcwd()\n", "import os\n"),
    ("import os, gc\n", "gc.collect()\nos.getcwd()\n", "import os\n"),
    ("import torch as th\n", "th.ones(gc)\n", ""),
    ("import torch.cuda\n", "torch.ones(gc)\n", ""),
    ("from a import gc, b, c\n", "gc(b, c)\n", "from a import b, c\n"),
    ("from a import b, gc, c\n", "gc(b, c)\n", "from a import b, c\n"),
    ("from a import b, c, gc, d, e\n", "gc(b, c)\nf(d, e)\n", "from a import b, c, d, e\n"),
    ("from a import (\n    b,\n    gc,\n)\n", "gc(b)\n", "from a import (\n    b,\n)\n"),
    ("from a import (\n    gc,\n    b,\n)\n", "gc(b)\n", "from a import (\n    b,\n)\n"),
    ("from a import (\n    b,\n    gc\n)\n", "gc(b)\n", "from a import (\n    b\n)\n"),
    ("from a import (\n    gc,\n)\n", "gc()\n", ""),
    ("'''Doc about gc.'''\nimport gc\n", "gc.collect()\n", "'''Doc about gc.'''\n"),
]


@pytest.mark.parametrize(("header", "body", "expected"), IMPORTS)
def test_imports_that_nothing_uses_any_more(header: str, body: str, expected: str) -> None:
    kept = "\n".join(line for line in body.splitlines() if "gc" not in line) or "pass"
    kept += f"\nprint({', '.join(name for name in 'bcde' if name in body.replace('gc', '').replace('collect', ''))})\n"
    assert imports_of(header + body, header + kept) == expected + kept


STAYING = [
    ("import gc\n", "gc.collect()\ngc.enable()\n", "gc.enable()\n"),
    ("import gc\n", "gc.collect()\n__all__ = ['gc']\n", "__all__ = ['gc']\n"),
    ("import gc\n", "gc.collect()\nx: 'gc.Y'\n", "x: 'gc.Y'\n"),
    ("import gc\n", "def f():\n    '>>> gc'\n    gc.collect()\n", "def f():\n    '>>> gc'\n"),
    ("import gc\n", "def f():\n    '>>> import b; gc'\n    gc.collect()\n", "def f():\n    '>>> import b; gc'\n"),
    ("import gc\n", "def f():\n    '>>> import gc; %no code'\n    gc()\n", "def f():\n    '>>> import gc; %no code'\n"),
    # It was not used before.
    ("import gc\n", "pass\n", "pass\n"),
    ("from a import gc as gc\n", "gc.collect()\n", "pass\n"),
    ("from a import *\n", "gc.collect()\n", "pass\n"),
    # It may be there for its effects, or is bound only sometimes.
    ("try:\n    import gc\nexcept ImportError:\n    gc = None\n", "gc.collect()\n", "pass\n"),
    ("import os; import gc\n", "gc.collect()\n", "pass\n"),
    ("import gc;a\n", "gc.collect()\n", "pass\n"),
    ("from a import (\n    b,\n    # why\n    gc,\n)\n", "gc(b)\n", "print(b)\n"),
    ("from a import (\n    gc,  # why\n)\n", "gc()\n", "pass\n"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "before", "after"), STAYING)
def test_imports_that_stay(header: str, before: str, after: str) -> None:
    assert imports_of(header + before, header + after) == header + after


def test_imports_that_other_files_take() -> None:
    assert imports_of("import gc\ngc.collect()\n", "import gc\npass\n", "gc") == "import gc\npass\n"


def test_examples_that_import_what_they_use() -> None:
    example = """
def f():
    '''Example.

        >>> from a import gc
        >>> for each in (1, 2):
        ...     gc(each)
        gc of 1
        gc of 2
    '''
"""
    assert imports_of(f"from a import b, gc{example}    b(gc)\n", f"from a import b, gc{example}    b()\n") == (
        f"from a import b{example}    b()\n"
    )
