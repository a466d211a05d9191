"""Puts rows that the scripts of this folder printed into `perflint/rules/worth.toml`.

    python benchmarks/rules/merge.py rows.toml…

A row, grid or run of the same name is replaced, others are added at the end.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

WORTH = Path(__file__).parents[2] / "perflint" / "rules" / "worth.toml"
_TABLE = re.compile(r"^\[(\S+)\]\n(?:(?!\[\w+\.).*\n)*", re.MULTILINE)


def tables(text: str) -> dict[str, str]:
    """The tables of a file by name, each with its text; comments outside of tables are left out."""
    cleaned = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    return {found[1]: found[0].strip() + "\n" for found in _TABLE.finditer(cleaned)}


def main() -> None:
    """Merge the files that the command line names."""
    text = WORTH.read_text(encoding="utf-8")
    comment = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    known = tables(text)
    for name in sys.argv[1:]:
        known.update(tables(Path(name).read_text(encoding="utf-8")))
    order = sorted(known, key=lambda name: ["runs", "rows", "grids"].index(name.partition(".")[0]))
    WORTH.write_text("\n".join([comment, *(known[name] for name in order)]), encoding="utf-8")


if __name__ == "__main__":
    main()
