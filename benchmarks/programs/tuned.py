"""Make public programs fast with `perflint tune`, and time each as it is and tuned, in turns.

    python benchmarks/programs/tuned.py --checkouts DIR --work DIR [--time S] [--each S] [--list FILE] [PROGRAM...]

The programs are those of `programs.toml`, or of another `--list`. They are copied from DIR, where
`benchmarks/tracer/public/run.py --prepare` puts them, and get random data (`data.py`). The probe times them on the
clock of the GPU. A program whose tuning leaves no patch is timed against itself.

Each GPU measures one program after the other; the CPUs are shared out. A program gets `--each` seconds: two thirds for
its tuning, the rest for the rounds; with `--rounds 0` all for its tuning, and another call adds the rounds. All end
after `--time` seconds. The same command goes on from the folder of `--work`: finished programs are left out, and a
search whose time was over goes on from its log.
`--work DIR/results.json` has the results after each stage.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import shlex
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path
from statistics import fmean, median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.programs import data
from perflint.tracer.probe import ProbeOptions
from perflint.tracer.steps import StepSource
from perflint.verify.execution import Program
from perflint.verify.workspace import Workspace

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PUBLIC = ROOT / "benchmarks" / "tracer" / "public"
DRIVER = "perflint_driver.py"
"""Name of our own file beside the program's; it is not tuned."""
OPTIONS = "--repeat 2 --steps 100 --warmup 30 --seed 1".split()
KINDS = ("original", "tuned")
_TUNE = "import sys; sys.path.insert(0, sys.argv.pop(1)); from perflint.cli.main import main; sys.exit(main())"
_GRACE = 20.0
"""Seconds that a program has to end by itself."""


def prepared(name: str, entry: dict[str, Any], root: Path, options: argparse.Namespace) -> tuple[Path, list[str]]:
    """A program with its data, copied if it is not there yet: the folder in which it runs, and its command."""
    folder = root / entry.get("folder", ".")
    if not root.exists():
        part = root.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(options.checkouts / name, part, symlinks=True)
        place = part / entry.get("folder", ".")
        if "driver" in entry or "launch" in entry:
            shutil.copy(
                HERE / "drivers" / entry["driver"] if "driver" in entry else PUBLIC / "launch.py", place / DRIVER
            )
        if "data" in entry:
            random.seed(0)
            getattr(data, entry["data"])(place, options.small)
        part.rename(root)
    arguments = shlex.split(entry.get("small" if options.small else "arguments", entry.get("arguments", "")))
    script = [DRIVER, entry["script"]] if "launch" in entry else [entry.get("script", DRIVER)]
    return folder, [sys.executable, *script, *arguments]


def measured(name: str, entry: dict[str, Any], options: argparse.Namespace) -> None:
    """Tune a program and time both versions, until its seconds are over."""
    end = time.monotonic() + options.each
    place = options.work / "results" / f"{name}.json"
    result: dict[str, Any] = json.loads(place.read_text()) if place.exists() else {}
    roots = {kind: options.work / kind / name for kind in KINDS}
    # On another machine the log of the search brings the patch back.
    is_open = not result.get("report") or not roots["tuned"].exists() or (result["status"] and not options.tuned)
    if is_open:
        shutil.rmtree(roots["tuned"], ignore_errors=True)
    places = {kind: prepared(name, entry, root, options) for kind, root in roots.items()}
    if is_open:
        result = tuned(name, *places["tuned"], roots["tuned"], options, result.get("tune_seconds", 0.0))
        written(place, result)
    while len(result["tuned"]) < options.rounds and end - time.monotonic() > result["seconds"] * 2:
        source = _source(options.work / f"{name}.runs.jsonl")
        left = end - time.monotonic()
        turn = {kind: timed(*places[kind], roots[kind], left, source) for kind in _turns(result)}
        for kind, figures in turn.items():
            result[kind].append(figures)
        is_over = len(result["tuned"]) >= options.rounds or any("error" in each for each in turn.values())
        result["done"] = is_over and (options.tuned or not result["status"])
        written(place, result)
        if is_over:
            return


def _turns(result: dict[str, Any]) -> tuple[str, ...]:
    return KINDS if len(result["tuned"]) % 2 == 0 else KINDS[::-1]


def tuned(
    name: str, folder: Path, command: list[str], root: Path, options: argparse.Namespace, before: float
) -> dict[str, Any]:
    """The report of the tuning, which went on for so many seconds before."""
    began = time.monotonic()
    budget = f"{max(options.each * (2 / 3 if options.rounds else 1), 1):.0f}s"
    own = ["--root", str(root), "--apply", "--budget", budget, "-o", str(options.work / f"{name}.patch"), *OPTIONS]
    done = subprocess.run(
        [sys.executable, "-c", _TUNE, str(ROOT), "tune", *own, "--", *command],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    took = before + time.monotonic() - began
    report = {"report": done.stdout.splitlines(), "told": done.stderr.splitlines()[-20:], "status": done.returncode}
    runs = [float(line.rpartition("(")[2].split()[0]) for line in report["told"] if line.endswith(" s)")]
    return report | {"tune_seconds": round(took, 1), "seconds": median(runs or [30.0]), **{kind: [] for kind in KINDS}}


def _source(log: Path) -> int:
    """The source of steps of the first run of a search, with which other runs may end."""
    if not log.exists():
        return int(StepSource.OPTIMIZER)
    with log.open(encoding="utf-8") as lines:
        return int(json.loads(next(lines))["run"]["seen"]["source"])


def timed(folder: Path, command: list[str], root: Path, limit: float, source: int) -> dict[str, Any]:
    """The times and the memory of one run, whose steps come from a source."""
    os.chdir(folder)
    space = Workspace(root)
    try:
        probe = ProbeOptions(
            str(space.output), str(root), str(space.folder), tuple(space.shared), 30, 200, 1, source=source
        )
        run = Program(command, space, probe).run({}, max(limit, 5.0))
    finally:
        space.close()
    figures = {"median": run.ms, "mean": run.mean_ms, "seconds": round(run.seconds, 1), "memory": run.memory}
    if run.seen is None or run.failed:
        return figures | {"error": run.told.splitlines()[-1] if run.told else "no steps"}
    return figures | {"clock": run.seen.clock, "device": run.seen.device, "steps": len(run.seen.times)}


def written(place: Path, result: dict[str, Any]) -> None:
    """Write a result whole or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(".part")
    part.write_text(json.dumps(result, indent=1, ensure_ascii=False))
    part.replace(place)


def spread(names: list[str], options: argparse.Namespace) -> None:
    """Measure programs, each in a process of its own, one at a time on each GPU."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        waiting.put(name)
    end = time.monotonic() + options.time
    cpus = sorted(os.sched_getaffinity(0))
    share = max(len(cpus) // len(options.devices), 1)

    def work(number: int, device: str) -> None:
        own = cpus[number * share : (number + 1) * share] or cpus
        while not waiting.empty():
            name = waiting.get()
            left = min(options.each, end - time.monotonic() - _GRACE)
            if left < options.least:
                print(f"{name}: no time was left", flush=True)
                continue
            measure(name, device, own, left, options)

    threads = [threading.Thread(target=work, args=each) for each in enumerate(options.devices)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure(name: str, device: str, cpus: list[int], seconds: float, options: argparse.Namespace) -> None:
    """Measure one program on a GPU in so many seconds."""
    paths = [os.environ.get("PYTHONPATH", ""), str(PUBLIC / "site-packages")]
    environment = os.environ | {
        "CUDA_VISIBLE_DEVICES": device,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "TORCHINDUCTOR_CACHE_DIR": str(options.work / "inductor"),
    }
    command = [sys.executable, __file__, "--only-here", *sys.argv[1:], "--each", f"{seconds:.0f}"]
    process = subprocess.Popen(
        [*[word for word in command if word not in options.programs], name], env=environment, start_new_session=True
    )
    os.sched_setaffinity(process.pid, cpus)
    try:
        process.wait(seconds + _GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        print(f"{name}: it took too long", flush=True)


def summary(options: argparse.Namespace) -> None:
    """Join the results in one file, and print a line for each."""
    results = {}
    for place in sorted((options.work / "results").glob("*.json")):
        result = results[place.stem] = json.loads(place.read_text())
        means = [[each["mean"] for each in result[kind] if each.get("mean")] for kind in KINDS]
        gain = f"{fmean(means[0]) / fmean(means[1]):.2f} ×" if all(means) else "not timed"
        head = result["report"][0] if result["report"] else (result["told"] or ["no report"])[-1]
        print(f"{place.stem}: {gain} in {len(means[1])} rounds; {head}", flush=True)
    whole = {"options": " ".join(OPTIONS), "programs": results}
    (options.work / "results.json").write_text(json.dumps(whole, indent=1, ensure_ascii=False))


def main() -> int:
    """Tune and time the programs that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--checkouts", type=Path, required=True, metavar="DIR")
    parser.add_argument("--list", default="programs.toml", metavar="FILE", help="the programs, a file beside this one")
    parser.add_argument("--work", type=Path, required=True, metavar="DIR")
    parser.add_argument("--time", type=float, default=570.0, metavar="S", help="seconds for all of this call")
    parser.add_argument("--each", type=float, default=180.0, metavar="S", help="seconds for a program")
    parser.add_argument("--least", type=float, default=60.0, metavar="S", help="seconds below which none is begun")
    parser.add_argument("--devices", default="0", help="numbers of GPUs, with commas; empty for the CPU")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tuned", action="store_true", help="only time the programs as far as they are tuned")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only-here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    options = parser.parse_args()
    entries = tomllib.loads((HERE / options.list).read_text())
    options.checkouts, options.work = options.checkouts.resolve(), options.work.resolve()
    options.devices = options.devices.split(",")
    if options.only_here:
        (name,) = options.programs
        measured(name, entries[name], options)
        return 0
    options.work.mkdir(parents=True, exist_ok=True)
    places = {name: options.work / "results" / f"{name}.json" for name in options.programs or entries}
    done = [name for name, place in places.items() if place.exists() and json.loads(place.read_text()).get("done")]
    spread([name for name in places if name not in done and (options.checkouts / name).exists()], options)
    summary(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
