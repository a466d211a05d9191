"""JSON of others: what Python reads beyond JSON is refused, and long documents take little memory."""

from __future__ import annotations

import io
import json
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflint.source.strict_json import NotJson, Stream, TooLarge, dumped, is_plain, parsed

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e300, 1e300) | st.text("aé☃ \\\"'[{"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab\\u", max_size=3), inner, max_size=4),
)


@pytest.mark.parametrize(
    "text",
    ["", "[", "[1,]", "{} 1", "NaN", "[-Infinity]", "1e999", "-1e999", '"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"',
     '{"\\ud800": 1}', '[[{"a": ["\\u0000"]}]]', "9" * 5000, "[" * 100_000, '"\x00"'],
)  # fmt: skip
def test_a_document_that_is_not_plain_json_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        parsed(text.encode())
    with pytest.raises(NotJson):
        stream = Stream(io.StringIO(text), 1_000_000)
        stream.skip()
        stream.end()


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    for data in (b"\xff", b'"\xed\xa0\x80"', '"a"'.encode("utf-16")):
        with pytest.raises(NotJson):
            parsed(data)


@pytest.mark.parametrize("text", ["😀", "\\u0000", "\\\\ud800", "naïve", os.fsdecode(b"\xff.py")])
def test_other_texts_are_read(text: str) -> None:
    assert is_plain(text) and parsed(json.dumps([text]).encode()) == [text]


def test_written_texts_are_plain() -> None:
    value = {"a\0": ["\ud800", ("b", 1.5)]}
    assert parsed(dumped(value).encode()) == {"a\\x00": ["\\ud800", ["b", 1.5]]}


@given(VALUES)
def test_a_stream_has_the_values_of_the_document(value: Any) -> None:
    text = json.dumps({"first": [1], "values": [value, value], "last": value}, indent=1)
    stream = Stream(io.StringIO(text), len(text))
    found: dict[str, Any] = {}
    for name in stream.members():
        if name == "first":
            stream.skip()
        else:
            found[name] = list(stream.items()) if name == "values" else stream.value()
    stream.end()
    assert found == {"values": [value, value], "last": value}


def test_a_stream_reads_a_document_longer_than_its_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perflint.source.strict_json._AHEAD", 40)
    values = [{"name": "x" * (at % 7), "at": at} for at in range(100)]
    assert list(Stream(io.StringIO(json.dumps(values)), 10_000).items()) == values


def test_a_stream_ends_at_its_limit() -> None:
    with pytest.raises(TooLarge):
        Stream(io.StringIO("[" + " " * 100 + "1]"), 100).skip()
