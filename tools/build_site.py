"""Builds the documentation as a site in build/site; a broken link or a page that no menu lists is a fault.

    python tools/build_site.py [--output FOLDER]

Needs `pip install -e ".[docs]"`. `python -m http.server -d build/site` shows it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Build the site. Exits with the status of MkDocs."""
    parser = argparse.ArgumentParser(description="build the documentation as a site")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site", help="(default: build/site)")
    folder: Path = parser.parse_args().output.resolve()
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--site-dir", str(folder)]
    raise SystemExit(subprocess.run(command, cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    main()
