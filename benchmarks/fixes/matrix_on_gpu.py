"""Runs the matrix of safe fixes (`tests/fixes/matrix`) on a real GPU, each template in a process of its own.

    python benchmarks/fixes/matrix_on_gpu.py --results benchmarks/fixes/results/matrix_h200.json [--whole] [--jobs 12]

An error of the GPU ends its process and leaves the other templates alone. Prints a line for each template and exits
with 1 if a fix changed a meaning or a process failed. `--simulated` tries the command on a machine without a GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from tests.fixes.matrix.templates import TEMPLATES

ROOT = Path(__file__).parents[2]
LIMIT = 540
"""Seconds that a template may take."""


def main() -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description="run the matrix of safe fixes on a GPU")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--whole", action="store_true", help="many more combinations")
    parser.add_argument("--simulated", action="store_true", help="simulate the GPU")
    parser.add_argument("--only", default="", help="templates with this in their names")
    parser.add_argument("--jobs", type=int, default=4)
    options = parser.parse_args()
    extra = ["--whole"] if options.whole else []
    extra += [] if options.simulated else ["--real"]
    names = [template.name for template in TEMPLATES if options.only in template.name]
    with ThreadPoolExecutor(options.jobs) as pool:
        templates = dict(zip(names, pool.map(lambda name: judged(name, extra), names), strict=True))
    device = "simulated" if options.simulated else torch.cuda.get_device_name()
    results = {"device": device, "torch": torch.__version__, "whole": options.whole, "templates": templates}
    options.results.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(any(each["failed"] or each["wrong"] for each in templates.values()))


def judged(name: str, extra: list[str]) -> dict[str, Any]:
    """The counts of a template, the first differences, and the last words of its process if that failed."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "said.json")
        command = [sys.executable, "-m", "tests.fixes.matrix.running", str(target), "--only", name, *extra]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
            failed = "" if done.returncode == 0 else done.stderr[-1500:]
        except subprocess.TimeoutExpired:
            failed = f"took more than {LIMIT} s"
        verdict = {} if failed else json.loads(target.read_text(encoding="utf-8"))["verdicts"][name]
    wrong = verdict.pop("wrong", [])
    found = {**verdict, "wrong": len(wrong), "examples": wrong[:5], "failed": failed}
    print(f"{name}: {time.monotonic() - began:.0f} s, {found['wrong']} wrong{', failed' if failed else ''}", flush=True)
    return found


if __name__ == "__main__":
    raise SystemExit(main())
