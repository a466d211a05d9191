"""Make public programs fast with `perflint tune`, and time each as it is and tuned, in turns.

    python benchmarks/programs/tuned.py --checkouts DIR --json FILE [--rounds N] [--budget TIME] [--small] PROGRAM...

DIR is that of `run.py`. The programs, their arguments and data are those of `run.py`, and so is the probe that times
them, on the clock of the GPU. A program whose tuning leaves no patch is timed once more against itself.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.programs import data
from benchmarks.programs.run import DRIVER, HERE, PUBLIC, ROOT
from perflint.tracer.probe import ProbeOptions
from perflint.verify.execution import Program
from perflint.verify.workspace import Workspace

OPTIONS = "--repeat 2 --steps 100 --warmup 30 --seed 1".split()
KINDS = ("original", "tuned")


def prepared(entry: dict[str, Any], source: Path, root: Path, small: bool) -> tuple[Path, list[str]]:
    """A copy of a program with its data: the folder in which it runs, and its command."""
    shutil.copytree(source, root, symlinks=True)
    folder = root / entry.get("folder", ".")
    if "launch" in entry:
        shutil.copy(PUBLIC / "launch.py", folder / DRIVER)
    if "data" in entry:
        random.seed(0)
        getattr(data, entry["data"])(folder, small)
    arguments = shlex.split(entry.get("small" if small else "arguments", entry.get("arguments", "")))
    script = [DRIVER, entry["script"]] if "launch" in entry else [entry["script"]]
    return folder, [sys.executable, *script, *arguments]


def tuned(name: str, entry: dict[str, Any], work: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The report of the tuning of a program, and the runs of both versions."""
    places = {kind: prepared(entry, options.checkouts / name, work / kind / name, options.small) for kind in KINDS}
    folder, command = places["tuned"]
    root = work / "tuned" / name
    began = time.monotonic()
    launch = "import sys; from perflint.cli.main import main; sys.exit(main())"
    own = ["--root", str(root), "--apply", "--budget", options.budget, "-o", str(work / f"{name}.patch"), *OPTIONS]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); {launch}",
            "tune",
            *own,
            "--",
            *command,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    print(done.stderr + done.stdout, flush=True)
    result: dict[str, Any] = {
        "tune_seconds": round(time.monotonic() - began, 1),
        "report": done.stdout.splitlines(),
        **{kind: [] for kind in KINDS},
    }
    for turn in range(options.rounds):
        for kind in KINDS if turn % 2 == 0 else KINDS[::-1]:
            result[kind].append(timed(*places[kind], work / kind / name))
    return result


def timed(folder: Path, command: list[str], root: Path) -> dict[str, Any]:
    """The times and the memory of one run."""
    os.chdir(folder)
    space = Workspace(root)
    try:
        probe = ProbeOptions(str(space.output), str(root), str(space.folder), tuple(space.shared), 30, 200, 1)
        run = Program(command, space, probe).run({}, 120)
    finally:
        space.close()
    figures = {"median": run.ms, "mean": run.mean_ms, "seconds": round(run.seconds, 1), "memory": run.memory}
    return figures | ({"clock": run.seen.clock, "steps": len(run.seen.times)} if run.seen is not None else {})


def main() -> int:
    """Tune and time the programs that are named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--checkouts", type=Path, required=True, metavar="DIR")
    parser.add_argument("--json", type=Path, default=Path("tuned.json"), metavar="FILE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", default="300s", metavar="TIME")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    options = parser.parse_args()
    options.checkouts, options.json = options.checkouts.resolve(), options.json.resolve()
    paths = [os.environ.get("PYTHONPATH", ""), str(PUBLIC / "site-packages")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    entries = tomllib.loads((HERE / "programs.toml").read_text())
    results: dict[str, Any] = {"options": " ".join(OPTIONS), "programs": {}}
    with tempfile.TemporaryDirectory(prefix="tuned-") as folder:
        for name in options.programs:
            results["programs"][name] = tuned(name, entries[name], Path(folder), options)
            options.json.write_text(json.dumps(results, indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
