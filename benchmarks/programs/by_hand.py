"""The changes of `hand/NAME.toml`: replacements of short fragments, so that no code of others is kept here."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "hand"


def hand(name: str) -> dict[str, Any]:
    """The changes by hand to a program; empty without any."""
    path = FOLDER / f"{name}.toml"
    return tomllib.loads(path.read_text()) if path.exists() else {}


def edited(folder: Path, known: dict[str, Any]) -> None:
    """Replace fragments of files in a folder. Raises ValueError if one is not there exactly once."""
    for edit in known.get("edit", ()):
        path = folder / edit["file"]
        text = path.read_text()
        if text.count(edit["old"]) != 1:
            raise ValueError(f"{edit['file']} has {text.count(edit['old'])} times {edit['old'][:60]!r}")
        path.write_text(text.replace(edit["old"], edit["new"]))
