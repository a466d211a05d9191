"""Lines of a traced file are found again in the file as it is now."""

from __future__ import annotations

import time
from difflib import SequenceMatcher
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflint.tracer.moved import same_lines

_lines = st.lists(st.sampled_from("abcdefgh"), max_size=20)


@given(_lines, _lines)
def test_pairs_are_equal_and_in_order(then: list[str], now: list[str]) -> None:
    pairs = sorted(same_lines(then, now))
    assert all(then[old] == now[new] for old, new in pairs)
    assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(pairs))


@given(_lines)
def test_a_text_is_like_itself(lines: list[str]) -> None:
    assert sorted(same_lines(lines, lines)) == [(at, at) for at in range(len(lines))]


def test_insertions_deletions_and_changes() -> None:
    then = ["import a", "", "def f():", "  x", "", "def g():", "  y", "", "z"]
    now = ["import a", "import b", "", "def f():", "  x2", "", "", "def g():", "  y", "z"]
    assert dict(same_lines(then, now)) == {0: 0, 1: 2, 2: 3, 4: 6, 5: 7, 6: 8, 8: 9}


def test_of_two_blocks_that_changed_places_the_longer_is_kept() -> None:
    assert dict(same_lines(list("abcxy"), list("xyabc"))) == {0: 2, 1: 3, 2: 4}


def test_as_many_lines_as_difflib_finds() -> None:
    then = [f"line {n}" if n % 3 else "" for n in range(900)]
    now = [f"{line} changed" if at % 10 == 4 else line for at, line in enumerate(then) if at % 17 != 3]
    blocks = SequenceMatcher(None, then, now, autojunk=False).get_matching_blocks()
    assert len(list(same_lines(then, now))) >= 0.97 * sum(block.size for block in blocks)


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (["a", "b"] * 40_000, ["a"] * 40_000),
        (["a", "b", "c"] * 30_000, ["c", "b", "a"] * 30_000),
        ([str(n) for n in range(80_000)], [str(n) for n in reversed(range(80_000))]),
        ([str(n // 2) for n in range(80_000)], [str(n // 3) for n in range(80_000)]),
    ],
    ids=["equal lines", "three lines", "reversed", "doubled"],
)
def test_texts_made_to_take_long(then: list[str], now: list[str]) -> None:
    start = time.process_time()
    list(same_lines(then, now))
    assert time.process_time() - start < 5
