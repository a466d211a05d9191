"""What torch's sync debug mode reports by itself, in a program that runs without perflint.

    python record_plain.py --output FILE SCRIPT [ARGUMENTS]

Python's own machinery of warnings is all that is used: each warning is shown, and for each report of a sync the
innermost frame of the files in the folder of the script is looked up. Written are rows of file, line, end_line (from
1), column, end_column (from 0, in bytes) and how often. Reports without such a frame are counted.
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
import warnings
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import torch

MESSAGE = "called a synchronizing CUDA operation"
Row = tuple[str, int, int, int, int]


class Watch:
    """Stands in for `warnings.showwarning`."""

    def __init__(self, own: str) -> None:
        self.rows: Counter[Row] = Counter()
        self.without_frame = 0
        self._own = own

    def show(self, message: Warning | str, *_: Any, **__: Any) -> None:
        if MESSAGE not in str(message):
            return
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not frame.f_code.co_filename.startswith(self._own):
            frame = frame.f_back
        if frame is None:
            self.without_frame += 1
            return
        line, end_line, column, end_column = list(frame.f_code.co_positions())[frame.f_lasti // 2]
        line = line or frame.f_lineno
        self.rows[frame.f_code.co_filename, line, end_line or line, column or 0, end_column or 0] += 1


def main() -> None:
    """Run the program, write what was seen."""
    parser = argparse.ArgumentParser(description="record what the sync debug mode reports")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("program", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    script = Path(options.program[0]).resolve()
    watch = Watch(f"{script.parent}/")
    sys.argv = [str(script), *options.program[1:]]
    sys.path[0] = str(script.parent)
    warnings.simplefilter("always")
    warnings.showwarning = watch.show
    if torch.cuda.is_available():
        torch.cuda.set_sync_debug_mode("warn")
    status = 0
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as exit_:
        status = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    finally:
        rows = [[*row, count] for row, count in sorted(watch.rows.items())]
        document = {"rows": rows, "without_frame": watch.without_frame, "status": status}
        options.output.write_text(json.dumps(document))
    raise SystemExit(status)


if __name__ == "__main__":
    main()
