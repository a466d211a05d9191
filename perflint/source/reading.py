"""Bytes to text and back: encodings, byte order marks, and what cannot be read."""

from __future__ import annotations

import codecs
import io
import os
import stat
import sys
from functools import cache
from typing import BinaryIO

from perflint.config.disk import carried_contents
from perflint.config.regular import LARGEST
from perflint.findings import Problem
from perflint.frozen import dataclass

# Few runs read notebooks.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from perflint.source.notebooks import Notebook

NOTEBOOK = ".ipynb"
"""How the names of notebooks end."""


_DESCRIPTORS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""The beginnings of paths of files that the shell has opened, as for `<(command)`."""


class Unreadable(Exception):
    """A file whose text cannot be had; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a file, with its newlines as they are, and what it takes to write it back."""

    text: str
    encoding: str = "utf-8"
    bom: bool = False
    notebook: Notebook | None = None
    """The notebook whose code it is."""

    def encode(self, text: str) -> bytes:
        """Another text as bytes of the same kind of file. Raises UnicodeEncodeError, and NotebookError."""
        if self.notebook is not None:
            text = self.notebook.written(text)
        return (codecs.BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)


def read(path: str) -> Text:
    """The text of a file. Raises Unreadable."""
    is_carried, data = carried_contents(path)
    if is_carried:
        if data is None:
            raise Unreadable(Problem(path, "no such file or folder"))
        return decode(data, path)
    try:
        if path.startswith(_DESCRIPTORS):
            return decode(_opened_by_shell(path), path)
        _require_contents(path)
        return decode(_contents(path), path)
    except OSError as error:
        raise Unreadable(_unopened(path, error)) from None


@cache
def _opened_by_shell(path: str) -> bytes:
    """The contents of a file of the shell, which may be a pipe: the check and the lines that it shows need them."""
    return _contents(path)


def _contents(path: str) -> bytes:
    with open(path, "rb") as file:
        return _all_of(file, path)


def read_standard_input(name: str) -> Text:
    """The text on standard input under the name `name`. Raises Unreadable."""
    if sys.stdin is None:
        raise Unreadable(Problem(name, "standard input is closed"))
    try:
        return decode(_all_of(sys.stdin.buffer, name), name)
    except OSError as error:
        raise Unreadable(_unopened(name, error)) from None


def _require_contents(path: str) -> None:
    """Raise Unreadable for a named pipe or a device, which may block or have no end, and OSError for no file."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "a named pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
        raise Unreadable(Problem(path, f"not read, because it is {kind}", help="pass its text as `-`"))


def _all_of(file: BinaryIO, path: str) -> bytes:
    """The contents of a file, which may be a pipe or a device without an end. Raises Unreadable."""
    data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise Unreadable(Problem(path, f"larger than {LARGEST >> 20} MB, which is too large for a source file"))
    return data


def decode(data: bytes, path: str) -> Text:
    """The text in `data`, by its byte order mark or declared encoding, UTF-8 otherwise. Raises Unreadable."""
    if path.lower().endswith(NOTEBOOK):
        return _notebook(data, path)
    bom = data.startswith(codecs.BOM_UTF8)
    encoding = "utf-8"
    if b"coding" in b"".join(data[:4096].splitlines(keepends=True)[:2]):
        encoding = _declared_encoding(data[:4096], path)
    try:
        return Text(data[len(codecs.BOM_UTF8) if bom else 0 :].decode(encoding), encoding, bom)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        message = f"not {_proper(encoding)}: byte 0x{error.object[error.start]:02x}: {error.reason}"
    except (UnicodeError, LookupError) as error:
        line, message = 1, str(error)
    help = "save the file as UTF-8, or declare its encoding in the first line, such as `# coding: latin-1`"
    raise Unreadable(Problem(path, message, help=help, line=line))


def _notebook(data: bytes, path: str) -> Text:
    """The code of a notebook. Raises Unreadable."""
    from perflint.source.notebooks import Notebook, NotebookError

    bom = data.startswith(codecs.BOM_UTF8)
    try:
        notebook = Notebook(data[len(codecs.BOM_UTF8) if bom else 0 :].decode())
    except UnicodeDecodeError as error:
        raise Unreadable(Problem(path, f"not UTF-8: {error.reason}", help="notebooks are UTF-8")) from None
    except NotebookError as error:
        raise Unreadable(Problem(path, error.message, help=error.help, line=error.line)) from None
    return Text(notebook.text, bom=bom, notebook=notebook)


def _declared_encoding(data: bytes, path: str) -> str:
    # tokenize takes ten milliseconds to import; few files declare an encoding.
    import tokenize

    # Unlike Python, tokenize takes only UTF-8 beside a declaration.
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    plain = data[len(bom) :].decode("ascii", "replace").encode("ascii", "replace")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(bom + plain).readline)
    except SyntaxError as error:
        help = "declare an encoding that Python knows, or none for UTF-8"
        raise Unreadable(Problem(path, str(error), help=help, line=1)) from None
    return encoding.removesuffix("-sig")


def _proper(encoding: str) -> str:
    return "UTF-8" if encoding == "utf-8" else encoding


def _unopened(path: str, error: OSError) -> Problem:
    if isinstance(error, FileNotFoundError):
        return Problem(path, "no such file or folder")
    return Problem(path, f"cannot be read: {error.strerror or error}")
