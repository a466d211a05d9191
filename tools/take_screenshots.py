"""Takes the pictures of docs/images/ again: the report of the traced example, in a real browser.

    python tools/take_screenshots.py

Needs Chromium. The terminal in README.md is not a screenshot: `tools/generate_docs.py` writes it.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser import browser, executable

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
TRACING = ROOT / "docs" / "examples" / "tracing"
_WIDTH, _HEIGHT = 1000, 760


def main() -> None:
    """Write the pictures."""
    program = executable()
    if program is None:
        raise SystemExit("there is no Chromium (apt-get install chromium)")
    with tempfile.TemporaryDirectory() as folder, browser(program) as page:
        report = Path(folder) / "report.html"
        trace = TRACING / "slow.jsonl.gz"
        command = [sys.executable, "-m", "perflint", "report", str(trace), "--root", str(ROOT), "--output", str(report)]
        subprocess.run(command, check=True, cwd=ROOT)
        if page is None:
            raise SystemExit(f"{program} does not start")
        page.resize(_WIDTH, _HEIGHT)
        page.open(report)
        answer = page.call("Page.captureScreenshot", format="webp", quality=70)
        (IMAGES / "report.webp").write_bytes(base64.b64decode(answer["data"]))


if __name__ == "__main__":
    main()
