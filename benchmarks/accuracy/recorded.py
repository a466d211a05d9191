"""Our own programs that were recorded on a GPU, one archive for each set: `programs.zip` and `heldout.zip`.

An archive holds the programs as they ran and their recording, `truth.json.gz`, whose lines are those of these texts.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

SETS = ("programs", "heldout")


def unpacked(name: str, into: Path) -> Path:
    """Unpack a set into a folder. Returns the folder of its programs."""
    with zipfile.ZipFile(Path(__file__).with_name(f"{name}.zip")) as archive:
        archive.extractall(into)
    return into / name
