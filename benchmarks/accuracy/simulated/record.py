"""Records a package in the simulation: its own tests run file by file, and their traces become one recording.

    python benchmarks/accuracy/simulated/record.py SDIST --package NAME --output FILE [--doctests] [--python PYTHON]

SDIST
    the unpacked source distribution, or a checkout of a repository
--package NAME
    the folder (or module) of the package itself, in SDIST or in SDIST/src
--doctests
    also run the examples in docstrings
--script FILE
    also run an example script; may be given again
--python PYTHON
    an interpreter in whose environment the tests can run; it needs pytest, perflint comes from this checkout

Each file runs as `python -m perflint trace --simulate --warmup 0 --steps 0 -m pytest FILE`, with the tensors of tests
on the simulated GPU (`simulated_device.py`). Tests that fail there are counted and shown; the lines that they ran, and
their waits, count as those of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.insert(0, str(Path(__file__).parent))

import recording
from recording import Run

from perflint.tracer.file import TraceError, read_trace

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
TESTS = ("test_*.py", "*_test.py")
LEFT_OUT = frozenset({".git", "build", "docs", "node_modules"})


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds."""

    file: float
    test: float
    all: float


@dataclass(frozen=True, slots=True)
class Job:
    """One process: the name of what it runs, and the arguments after those of `perflint trace`."""

    name: str
    program: tuple[str, ...]


def main() -> int:
    """Record one package."""
    parser = argparse.ArgumentParser(description="record a package in the simulation")
    parser.add_argument("sdist", type=Path, metavar="SDIST")
    parser.add_argument("--package", required=True, metavar="NAME", help="folder or module of the package")
    parser.add_argument("--version", default="", help="its version, for the recording")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--doctests", action="store_true", help="also run the examples in docstrings")
    parser.add_argument("--script", action="append", default=[], metavar="FILE", help="also run an example script")
    parser.add_argument("--tests", action="append", default=[], metavar="FILE", help="only these test files")
    parser.add_argument("--together", type=int, default=1, metavar="N", help="test files in one process (default: 1)")
    parser.add_argument("--python", default=sys.executable, metavar="PYTHON")
    for name, seconds, of in (("file", 120.0, "process"), ("test", 20.0, "test"), ("all", 1200.0, "package")):
        wanted = f"for each {of} (default: {seconds:.0f})"
        parser.add_argument(f"--{name}-limit", type=float, default=seconds, metavar="SECONDS", help=wanted)
    options = parser.parse_args()
    sdist = options.sdist.resolve()
    root = import_root(sdist, options.package)
    jobs = [*test_jobs(sdist, options.tests, options.together), *other_jobs(sdist, root / options.package, options)]
    limits = Limits(options.file_limit, options.test_limit, options.all_limit)
    runs = list(run_all(options.python, sdist, root, options.package, jobs, limits))
    prefix = "" if root == sdist else f"{root.relative_to(sdist).as_posix()}/"
    document = recording.merged(options.package, options.version, prefix, runs)
    recording.write(options.output, document)
    outcomes = sum((Counter(run.outcomes) for run in runs), Counter[str]())
    waits = sum(1 for row in document["syncs"] if "excluded" not in row)
    lines = sum(map(len, document["lines"]["cuda"].values()))
    print(f"{options.package}: {dict(outcomes)}; {lines} lines ran, {waits} places waited")
    return 0


def import_root(sdist: Path, package: str) -> Path:
    """The folder that the package is imported from. Raises SystemExit if it is not there."""
    for folder in (sdist, sdist / "src"):
        if (folder / package).is_dir() or (folder / f"{package}.py").is_file():
            return folder
    raise SystemExit(f"there is no package {package} in {sdist}")


def test_jobs(sdist: Path, only: Sequence[str] = (), together: int = 1) -> Iterator[Job]:
    """The test files, the small ones first, so many in one process."""
    found = {path for pattern in TESTS for path in sdist.rglob(pattern)}
    names = {path: path.relative_to(sdist) for path in found}
    kept = [path for path, name in names.items() if LEFT_OUT.isdisjoint(name.parts)]
    ordered = [names[path].as_posix() for path in sorted(kept, key=lambda path: (path.stat().st_size, path))]
    chosen = [name for name in ordered if not only or name in only]
    for first in range(0, len(chosen), together):
        files = chosen[first : first + together]
        yield Job(" ".join(files), ("-m", "pytest", *files, *PYTEST))


PYTEST = (
    "-q",
    "-p",
    "simulated_device",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:perflint",
    "-o",
    "addopts=",
    "--continue-on-collection-errors",
)


def other_jobs(sdist: Path, package: Path, options: argparse.Namespace) -> Iterator[Job]:
    """Docstrings and scripts, if they are wanted."""
    if options.doctests:
        name = package.relative_to(sdist).as_posix()
        yield Job(f"{name} (docstrings)", ("-m", "pytest", "--doctest-modules", name, *PYTEST))
    for script in options.script:
        yield Job(script, (script,))


def run_all(python: str, sdist: Path, root: Path, package: str, jobs: Sequence[Job], limits: Limits) -> Iterator[Run]:
    """The runs, one after another; a job whose turn does not come within the limit counts as `file not run`."""
    ends = time.monotonic() + limits.all
    for job in jobs:
        if time.monotonic() > ends:
            yield Run(job.name, {"file not run": 1}, None, "no time left")
            continue
        done = run(python, sdist, root, package, job, limits)
        print(f"  {job.name}: {done.ended} {dict(done.outcomes)}", flush=True)
        yield done


def run(python: str, sdist: Path, root: Path, package: str, job: Job, limits: Limits) -> Run:
    """Trace one process; it is ended if it does not end by itself some time after its limit."""
    own = root / package if (root / package).is_dir() else root / f"{package}.py"
    with tempfile.TemporaryDirectory(prefix="simulated-") as place:
        trace, outcomes = Path(place) / "trace.jsonl.gz", Path(place) / "outcomes.json"
        options = ["--simulate", "--warmup", "0", "--steps", "0", "--own", str(own), "--output", str(trace)]
        command = [python, "-m", "perflint", "trace", *options, *job.program]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, (ROOT, root, HERE, sdist))),
            "PERFLINT_OWN": f"{own}{os.sep}" if own.is_dir() else str(own),
            "PERFLINT_OUTCOMES": str(outcomes),
            "PERFLINT_FILE_SECONDS": str(limits.file),
            "PERFLINT_TEST_SECONDS": str(limits.test),
            # TorchScript cannot compile calls of functions that the simulation has replaced.
            "PYTORCH_JIT": "0",
            # The tensors are small: threads would wait for each other.
            "OMP_NUM_THREADS": "1",
        }
        with (Path(place) / "log").open("w+b") as log:
            process = subprocess.Popen(
                command, cwd=sdist, env=environment, stdout=log, stderr=log, start_new_session=True
            )
            status = ended(process, limits.file + 2 * limits.test)
            log.seek(0)
            text = log.read().decode(errors="replace")
        counted = json.loads(outcomes.read_text(encoding="utf-8")) if outcomes.exists() else {}
        if not counted:
            counted = {"not collected": 1} if "pytest" in job.program else {status: 1}
        try:
            found = read_trace(trace) if trace.exists() else None
        except TraceError as error:
            found, status = None, error.message
        if found is None or "not collected" in counted:
            print(text[-1500:], file=sys.stderr)
        return Run(job.name, counted, found, status)


def ended(process: subprocess.Popen[bytes], seconds: float) -> str:
    """Wait for a process, and end it if that takes too long: first so that it can still write its trace."""
    for wait, number in ((seconds, signal.SIGINT), (60.0, signal.SIGKILL)):
        try:
            return f"exit {process.wait(wait)}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, number)
    process.wait()
    return "killed after the time limit"


if __name__ == "__main__":
    sys.exit(main())
