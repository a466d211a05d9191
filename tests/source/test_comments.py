"""The digest of the code of a text: equal for texts that differ in comments alone."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflint.source.comments import digest_of_code

TEXT = """\
import torch  # the library


def f(x):
    # A comment of its own.
    name = "a # in a string"
    long = '''
    # in a long string
    '''
    said = f"{name} # {x!r}"
    return x
"""


def digest(text: str) -> str:
    literals = (ast.Constant, ast.JoinedStr)
    return digest_of_code(text, [node for node in ast.walk(ast.parse(text)) if isinstance(node, literals)])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # the library", ""),
        ("# the library", "# another word"),
        ("# A comment of its own.", "# é"),
        ("return x\n", "return x\n# more\n"),
        ("return x\n", "return x  # type of x\n\n"),
    ],
)
def test_comments_do_not_count(old: str, new: str) -> None:
    assert old in TEXT
    assert digest(TEXT.replace(old, new)) == digest(TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a # in a string", "a # in a text"),
        ("# in a long string", "# in a longer string"),
        ("# {x!r}", "# {x!s}"),
        ("    # A comment of its own.\n", ""),
        ("# the library", "# type: ignore"),
        ("return x", "return  x"),
    ],
)
def test_code_counts(old: str, new: str) -> None:
    assert old in TEXT
    assert digest(TEXT.replace(old, new)) != digest(TEXT)


@given(st.lists(st.sampled_from(["x = 1", "# c", "'#'", '"""', "\n", " ", "f'{x}#'", "#", "y = 'é'  # é", "\\", "("])))
def test_equal_digests_mean_equal_trees(parts: list[str]) -> None:
    text = "".join(parts)
    other = text.replace("# c", "# d")
    try:
        trees = [ast.dump(ast.parse(each), include_attributes=True) for each in (text, other)]
    except (SyntaxError, ValueError):
        return
    if digest(text) == digest(other):
        assert trees[0] == trees[1]
