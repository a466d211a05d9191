"""Reads the tables of facts. Their parsed form is kept beside the compiled modules.

Parsing TOML takes longer than checking a small file. The parsed form is written anew if it is missing or if the file
has changed; perflint also works without it.
"""

from __future__ import annotations

import marshal
import sys
from pathlib import Path
from typing import Any

_MAGIC = f"perflint table 1 {sys.implementation.cache_tag}"


def table(file: Path) -> dict[str, Any]:
    """The contents of a TOML file of perflint."""
    status = file.stat()
    stamp = (_MAGIC, status.st_mtime_ns, status.st_size)
    kept = file.parent / "__pycache__" / f"{file.stem}.{sys.implementation.cache_tag}.table"
    found = _read(kept, stamp)
    if found is None:
        import tomllib

        found = tomllib.loads(file.read_text(encoding="utf-8"))
        _keep(kept, stamp, found)
    return found


def _read(kept: Path, stamp: tuple[str, int, int]) -> dict[str, Any] | None:
    try:
        magic, written, size, found = marshal.loads(kept.read_bytes())
    except (OSError, EOFError, ValueError, TypeError):
        return None
    return found if (magic, written, size) == stamp and isinstance(found, dict) else None


def _keep(kept: Path, stamp: tuple[str, int, int], found: dict[str, Any]) -> None:
    if sys.dont_write_bytecode:
        return
    # Runs once after an installation; other starts must not pay for the import.
    from perflint.source.writing import whole

    try:
        kept.parent.mkdir(exist_ok=True)
        with whole(kept) as file:
            file.write(marshal.dumps((*stamp, found)))
    except OSError:
        return
