"""Encodings, and what cannot be read."""

from __future__ import annotations

import io
import os
import socket
import sys
from pathlib import Path

import pytest

from perflint.source import reading
from perflint.source.reading import Text, Unreadable, decode, read, read_standard_input

READABLE = [
    (b"x = 1\n", Text("x = 1\n")),
    (b"", Text("")),
    ("x = 'ü'\r\n".encode(), Text("x = 'ü'\r\n")),
    (b"\xef\xbb\xbfx = 1\r", Text("x = 1\r", "utf-8", True)),
    (b"# coding: utf-8\nx = '\xc3\xbc'\n", Text("# coding: utf-8\nx = 'ü'\n")),
    (b"\xef\xbb\xbf# coding: utf-8\n", Text("# coding: utf-8\n", "utf-8", True)),
    (b"# -*- coding: latin-1 -*-\nx = '\xfc'\n", Text("# -*- coding: latin-1 -*-\nx = 'ü'\n", "iso-8859-1")),
    (b"# coding: latin-1, '\xfc'\n", Text("# coding: latin-1, 'ü'\n", "iso-8859-1")),
    (b"#!/bin/python\n# vim: set fileencoding=cp1252 :\n'\x80'\n", None),
    (b"x = 1\n# nothing\n# coding: latin-1 is too late\n", Text("x = 1\n# nothing\n# coding: latin-1 is too late\n")),
    (b"coding = 'latin-1'\n", Text("coding = 'latin-1'\n")),
]


@pytest.mark.parametrize(("data", "expected"), READABLE)
def test_decode_and_encode(data: bytes, expected: Text | None) -> None:
    text = decode(data, "a.py")
    assert expected is None or text == expected
    assert text.encode(text.text) == data


def test_a_declared_code_page() -> None:
    assert decode(b"# coding: cp1252\n'\x80'\n", "a.py").text == "# coding: cp1252\n'€'\n"


UNREADABLE = [
    (b"x = 1\ny = '\xfc'\n", "not UTF-8: byte 0xfc: invalid start byte", 2),
    (b"\xef\xbb\xbf\xff", "not UTF-8: byte 0xff: invalid start byte", 1),
    (b"\xff\xfex\x00", "not UTF-8: byte 0xff: invalid start byte", 1),
    (b"# coding: ascii\n\n'\xfc'\n", "not ascii: byte 0xfc: ordinal not in range(128)", 3),
    (b"# coding: nonsense\n", "unknown encoding: nonsense", 1),
    (b"\xef\xbb\xbf# coding: latin-1\n", "encoding problem: utf-8", 1),
    (b"# coding: rot13\n", "'rot13' is not a text encoding; use codecs.decode() to handle arbitrary codecs", 1),
]


@pytest.mark.parametrize(("data", "message", "line"), UNREADABLE)
def test_what_cannot_be_decoded(data: bytes, message: str, line: int) -> None:
    with pytest.raises(Unreadable) as raised:
        decode(data, "a.py")
    problem = raised.value.problem
    assert (problem.path, problem.message, problem.line) == ("a.py", message, line)
    assert problem.help is not None
    assert not problem.internal


def test_reading_keeps_newlines(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"a\r\nb\rc\n")
    assert read(str(file)).text == "a\r\nb\rc\n"


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(Unreadable) as raised:
        read(str(tmp_path / "none.py"))
    assert raised.value.problem.message == "no such file or folder"


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(Unreadable) as raised:
        read(str(tmp_path))
    assert raised.value.problem.message == "cannot be read: Is a directory"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x = '\xc3\xbc'\r\n")))
    assert read_standard_input("-").text == "x = 'ü'\r\n"


def test_a_closed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(Unreadable) as raised:
        read_standard_input("-")
    assert raised.value.problem.message == "standard input is closed"


def test_standard_input_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: object) -> int:
            raise IsADirectoryError(21, "Is a directory")

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Broken())))
    with pytest.raises(Unreadable) as raised:
        read_standard_input("x.py")
    assert raised.value.problem.message == "cannot be read: Is a directory"


def test_a_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST", 1 << 20)
    (tmp_path / "a.py").write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(Unreadable) as raised:
        read(str(tmp_path / "a.py"))
    assert raised.value.problem.message == "larger than 1 MB, which is too large for a source file"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_named_pipes_and_devices_are_refused_at_once(tmp_path: Path) -> None:
    pipe, link, listener = tmp_path / "pipe.py", tmp_path / "link.py", tmp_path / "socket.py"
    os.mkfifo(pipe)
    link.symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(listener))
    for path, kind in ((pipe, "a named pipe"), (link, "a device"), (listener, "a socket")):
        with pytest.raises(Unreadable) as raised:
            read(str(path))
        problem = raised.value.problem
        assert (problem.path, problem.message) == (str(path), f"not read, because it is {kind}")
        assert problem.help == "pass its text as `-`"


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs files for descriptors")
def test_a_pipe_that_the_shell_has_opened_is_read() -> None:
    end, start = os.pipe()
    reading._opened_by_shell.cache_clear()
    os.write(start, b"x = 1\n")
    os.close(start)
    try:
        # The check reads the text, and the output once more, for the lines that it shows.
        assert [read(f"/dev/fd/{end}").text for _ in range(2)] == ["x = 1\n"] * 2
    finally:
        os.close(end)
