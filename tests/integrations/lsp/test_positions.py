"""Positions in the units of the protocol, against an editor that applies the edits."""

from __future__ import annotations

import pytest

pytest.importorskip("pygls")

from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import Position, PositionEncodingKind

from perflint.findings import Span
from perflint.integrations.lsp.positions import Positions
from perflint.source.text import Source
from tests.integrations.lsp.editor import applied

TEXTS = st.text(st.sampled_from("ab😀é\n\f"), max_size=30)


@given(TEXTS, TEXTS)
def test_edits_give_the_other_text(before: str, after: str) -> None:
    assert applied(before, Positions(Source("", before)).edits(after)) == after


def test_edits_are_small() -> None:
    before = "import torch\n\na = 1\nb = 2\nc = 3\n"
    after = "import torch\nimport os\n\na = 1\nb = 3\nc = 3\n"
    edits = Positions(Source("", before)).edits(after)
    assert [(each.range.start.line, each.range.end.line, each.new_text) for each in edits] == [
        (1, 1, "import os\n"),
        (3, 4, "b = 3\n"),
    ]


@pytest.mark.parametrize(
    ("encoding", "start", "end"),
    [(PositionEncodingKind.Utf8, 10, 11), (PositionEncodingKind.Utf16, 7, 8), (PositionEncodingKind.Utf32, 6, 7)],
)
def test_encodings(encoding: PositionEncodingKind, start: int, end: int) -> None:
    positions = Positions(Source("", 'x\n"😀é", y\n'), encoding)
    found = positions.range(Span(2, 7, 2, 8))
    assert (found.start, found.end) == (Position(1, start), Position(1, end))
    assert positions.place(found.start) == (2, 7)


def test_places_that_the_text_does_not_have() -> None:
    positions = Positions(Source("", "ab\r\né\r\n"))
    assert positions.place(Position(0, 99)) == (1, 3)
    assert positions.place(Position(1, 99)) == (2, 2)
    assert positions.place(Position(7, 0)) == (3, 1)
