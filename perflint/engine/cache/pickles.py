"""Values as bytes and back. Reading builds objects of perflint's own classes and nothing else."""

from __future__ import annotations

import io
import pickle
import zlib
from enum import Enum
from pathlib import Path, PosixPath, WindowsPath
from typing import Any

_OWN = ("perflint.findings", "perflint.semantics.")
_PATHS = {"PosixPath": PosixPath, "WindowsPath": WindowsPath, "Path": Path}


_RAISED = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Errors of damaged pickles."""
_LARGEST = 1 << 28
"""Bytes of a value: a few kilobytes could stand for gigabytes."""


class Damaged(ValueError):
    """Bytes that perflint has not written."""


def dumped(value: object) -> bytes:
    """A value as bytes. Raises RecursionError for values that are nested too deep."""
    return zlib.compress(pickle.dumps(value, protocol=5), 1)


def loaded(data: bytes) -> Any:
    """The value of bytes. Raises Damaged."""
    try:
        return _Reader(io.BytesIO(unpacked(data))).load()
    except _RAISED as error:
        raise Damaged(str(error)) from None


def unpacked(data: bytes) -> bytes:
    """Decompressed bytes. Raises Damaged, also for more than any value takes."""
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(data, _LARGEST)
    except (zlib.error, TypeError) as error:
        raise Damaged(str(error)) from None
    if stream.unconsumed_tail or not stream.eof:
        raise Damaged("it is too large, or cut off")
    return found


def _is_of_values(kind: type) -> bool:
    """True for classes that hold values and do nothing when an object is made."""
    return issubclass(kind, Enum) or hasattr(kind, "_fields_of_class") or hasattr(kind, "_fields")


class _Reader(pickle.Unpickler):
    """A pickle may name any function of any module to be called; this one allows the classes of the values only."""

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("pathlib") and name in _PATHS:
            return _PATHS[name]
        if module.startswith(_OWN) and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module and _is_of_values(found):
                return found
        raise Damaged(f"{module}.{name}")
