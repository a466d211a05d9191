"""The trace file: gzip-compressed JSON lines, the header first, the count of records last.

Each line is an object whose `record` says which class of `events` its other keys fill. A reader
passes over kinds and keys that it does not know, so that newer minor versions can be read.
"""

from __future__ import annotations

import gzip
import io
import itertools
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from perflint.config.errors import ConfigurationError
from perflint.source.strict_json import NotJson, dumped, parsed
from perflint.source.typed_json import Unfit, record
from perflint.source.writing import whole
from perflint.tracer.events import KINDS, Header, Record
from perflint.tracer.trace import Trace

FORMAT = "perflint-trace"
VERSION = 1
LINE_LIMIT = 1 << 20
"""Bytes of a line. Lines of the tracer are far shorter."""
SIZE_LIMIT = 64 << 20
"""Bytes of a file, uncompressed. Long recordings take a few megabytes; this much is read in seconds."""
RECORD_LIMIT = 500_000
"""Lines of a file. The recording's own limits, on steps, places, calls and work, stay far below."""
_HEAD = 1 << 12
"""Bytes by which a trace and a profile are distinguished."""
_DATABASE = b"SQLite format 3\0"
"""The beginning of a profile that `nsys export --type sqlite` wrote."""
_OF_NSIGHT = frozenset({".nsys-rep", ".qdrep"})
_RERECORD = "record it anew with `perflint trace`"
_Kind = TypeVar("_Kind")
_NAMES = {kind: name for name, kind in KINDS.items()}


class TraceError(ConfigurationError):
    """A trace that cannot be read or recorded."""


def write_trace(path: Path, trace: Trace) -> None:
    """Write a trace in one go: the file is there whole, or as it was before. Raises OSError."""
    with whole(path) as file, gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0, compresslevel=6) as packed:
        for line in _lines(trace):
            packed.write(line)


def _lines(trace: Trace) -> Iterator[bytes]:
    yield _line({"record": "header", "format": FORMAT, "version": VERSION, **asdict(trace.header)})
    for each in trace.records:
        yield _line({"record": _NAMES[type(each)], **asdict(each)})
    yield _line({"record": "end", "records": len(trace.records)})


def _line(document: dict[str, Any]) -> bytes:
    return dumped(document).encode() + b"\n"


def read_trace(path: Path) -> Trace:
    """Read a trace. Raises TraceError for a file that is missing, foreign, cut off or malformed."""
    try:
        if _is_profile(path):
            return _of_profile(path)
        with path.open("rb") as file:
            return _read(file, str(path))
    except (gzip.BadGzipFile, zlib.error):
        raise TraceError(f"{path} is not a trace, or damaged: it is not compressed as one", _RERECORD) from None
    except EOFError:
        raise _cut_off(str(path)) from None
    except OSError as error:
        help = "`perflint trace SCRIPT` records one"
        raise TraceError(f"{path} cannot be read: {error.strerror or error}", help) from None


def _is_profile(path: Path) -> bool:
    """True if a file begins as a Chrome trace. Raises TraceError, OSError, and the errors of damaged files."""
    from perflint.tracer.profiles import is_profile, unpacked

    with unpacked(path) as file:
        head = file.read(_HEAD)
    if head.startswith(_DATABASE) or path.suffix in _OF_NSIGHT:
        help = "record with `perflint trace SCRIPT`, or with torch.profiler (`with_stack=True`, `export_chrome_trace`)"
        raise TraceError(f"{path} is not a trace: files of Nsight Systems do not show which lines wait", help)
    return is_profile(head)


def _of_profile(path: Path) -> Trace:
    """The trace of a profile. Raises TraceError, OSError."""
    from perflint.tracer.profiles import ProfileError, read_profile

    try:
        return read_profile(path)
    except ProfileError as error:
        help = "`perflint trace` records traces, `export_chrome_trace` of torch.profiler writes profiles"
        raise TraceError(f"{path} cannot be used as a profile: {error}", help) from None


def _read(file: BinaryIO, name: str) -> Trace:
    documents = _documents(file, name)
    first = next(documents, None)
    if first is None:
        raise _cut_off(name)
    header = _header(first, name)
    records: list[Record] = []
    for count, document in enumerate(documents):
        kind = document.get("record")
        if kind == "end":
            if document.get("records") != count or next(documents, None) is not None:
                raise TraceError(f"{name} is damaged: its last line does not fit the others", _RERECORD)
            return Trace(header, tuple(records))
        if isinstance(kind, str) and kind in KINDS:
            records.append(_decoded(KINDS[kind], document, f"{name}, line {count + 2}"))
    raise _cut_off(name)


def _header(document: dict[str, Any], name: str) -> Header:
    if document.get("format") != FORMAT:
        raise TraceError(f"{name} is not a trace: its first line is not a header", _RERECORD)
    version = document.get("version")
    if version != VERSION:
        help = f"this perflint reads version {VERSION}; {_RERECORD}, or use the perflint that wrote it"
        raise TraceError(f"{name} has version {str(version)[:20]} of the format", help)
    return _decoded(Header, document, f"{name}, line 1")


def _cut_off(name: str) -> TraceError:
    return TraceError(f"{name} is cut off: its end is missing", f"copy it whole, or {_RERECORD}")


def _documents(file: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    """The objects of the lines. Never holds more than a line."""
    size = 0
    with gzip.GzipFile(fileobj=file) as unpacked, io.BufferedReader(unpacked) as lines:
        for count in itertools.count():
            line = lines.readline(LINE_LIMIT + 1)
            if not line:
                return
            size += len(line)
            if len(line) > LINE_LIMIT or size > SIZE_LIMIT or count > RECORD_LIMIT:
                raise TraceError(f"{name} is larger than any trace", _RERECORD)
            if not line.endswith(b"\n"):
                raise _cut_off(name)
            try:
                document = parsed(line)
            except NotJson as error:
                raise TraceError(f"{name} is not a trace, or damaged: {error}", _RERECORD) from None
            if not isinstance(document, dict):
                raise TraceError(f"{name} is not a trace, or damaged: a line is not an object", _RERECORD)
            yield document


def _decoded(kind: type[_Kind], document: dict[str, Any], where: str) -> _Kind:
    try:
        return record(kind, document)
    except Unfit as error:
        raise TraceError(f"{where}: {error}", _RERECORD) from None
