"""How many of the places that synchronised on a GPU `perflint trace --simulate` finds on the CPU.

    python benchmarks/tracer/simulate.py [--set programs|heldout] [PROGRAM...]

Each program of a set (`benchmarks/accuracy/recorded.py`) runs as it was recorded on a GPU, simulated.
A place is an expression: file, lines and columns. It prints for each program

found / truth
    the recorded places that are reported, and how many there are; those of whole modules on their
    way to the device (`excluded` in the recording) count on neither side
false
    the reported places that are not recorded, on lines that ran on the GPU
seconds
    of the run on the processor; programs run one after another

and names with `--show` each place that is missing or false. Python 3.11 gives a whole f-string and
a whole `a or b` for each of their parts, and of `a and not b` sometimes the other part: there, a
reported place finds all recorded ones within it, and what is left is paired by line.
Explicit waits, such as `torch.cuda.synchronize`, are not in the recording and count on neither
side.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.accuracy.recorded import SETS, unpacked
from perflint.tracer.events import Sync
from perflint.tracer.file import read_trace
from perflint.tracer.trace import Trace

ROOT = Path(__file__).parents[2]
EXACT = sys.version_info >= (3, 12)
"""True if Python says exactly where in an f-string or in `a or b` it is; the recordings do."""
Place = tuple[str, int, int, int, int]
"""File, line, column, end line, end column: lines and columns from 1, columns in characters."""


@dataclass(frozen=True, slots=True)
class Score:
    """What became of one program."""

    program: str
    found: frozenset[Place]
    missed: frozenset[Place]
    false: frozenset[Place]
    seconds: float
    status: int

    @property
    def truth(self) -> int:
        """How many places the GPU found."""
        return len(self.found) + len(self.missed)


class Truth:
    """The recording of one of the sets of programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._document: dict[str, Any] = json.loads(gzip.decompress((folder / "truth.json.gz").read_bytes()))

    @property
    def programs(self) -> dict[str, dict[str, Any]]:
        """By program, how it was run."""
        programs: dict[str, dict[str, Any]] = self._document["programs"]
        return programs

    def places(self, program: str, excluded: bool = False) -> frozenset[Place]:
        """Where a program synchronised; or with `excluded` what no finding is asked for."""
        rows = [row for row in self._document["syncs"] if _is_of(row["file"], program)]
        return frozenset(self._place(row) for row in rows if excluded == ("excluded" in row))

    def _place(self, row: dict[str, Any]) -> Place:
        lines = (self.folder / row["file"]).read_bytes().splitlines()
        columns = (
            len(lines[row[line] - 1][: row[column]].decode("utf-8", "ignore")) + 1
            for line, column in (("line", "col"), ("end_line", "end_col"))
        )
        start, end = columns
        return (row["file"], row["line"], start, row["end_line"], end)

    def ran(self, file: str, line: int) -> bool:
        """True if a line ran on the GPU."""
        return str(line) in self._document["counts"].get(file, {})


def _is_of(file: str, program: str) -> bool:
    """True if a file is a program's: its own, or one of its folder."""
    folder = program.rpartition("/")[0]
    return file.startswith(folder + "/") if folder else file == program


Run = Callable[[Path, list[str], float], tuple[int, str]]
"""Runs `perflint trace` with arguments in a folder, for a limit of seconds: its exit status, and its errors."""


def in_a_process(folder: Path, arguments: list[str], limit: float) -> tuple[int, str]:
    """Run `perflint trace` in a process of its own. The exit status past the limit is 124."""
    # The tensors are small: threads would wait for each other.
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "perflint", "trace", *arguments]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return 124, f"no end after {limit:g} seconds"
    return done.returncode, done.stderr.decode(errors="replace")


def simulated(
    folder: Path, program: str, arguments: list[str], limit: float, run: Run = in_a_process
) -> tuple[Trace | None, int]:
    """The trace of a simulated run, if it wrote one, and its exit status."""
    with tempfile.TemporaryDirectory(prefix="simulate-") as place:
        output = Path(place) / "trace.jsonl.gz"
        options = ["--simulate", "--warmup", "0", "--steps", "0", "--output", str(output)]
        status, errors = run(folder, [*options, program, *arguments], limit)
        if status:
            print(errors[-2000:], file=sys.stderr)
        return (read_trace(output) if output.exists() else None), status


def score(truth: Truth, program: str, limit: float = 900.0, run: Run = in_a_process) -> Score:
    """Run one program, and hold what is reported against the recording."""
    start = _seconds()
    trace, status = simulated(truth.folder, program, truth.programs[program]["arguments"], limit, run)
    reported = frozenset(_reported(trace)) if trace else frozenset()
    known = truth.places(program)
    pairs = [(place, other) for place in reported for other in known if _is_same(place, other)]
    pairs += _by_line(reported - {place for place, _ in pairs}, known - {other for _, other in pairs})
    others = reported - {place for place, _ in pairs} - truth.places(program, excluded=True)
    false = frozenset(place for place in others if truth.ran(place[0], place[1]))
    found = frozenset(other for _, other in pairs)
    return Score(program, found, known - found, false, _seconds() - start, status)


def _is_same(reported: Place, recorded: Place) -> bool:
    if EXACT or reported == recorded:
        return reported == recorded
    file, line, column, end_line, end_column = recorded
    starts, ends = (reported[1], reported[2]) <= (line, column), (reported[3], reported[4]) >= (end_line, end_column)
    return reported[0] == file and reported[1] == line and starts and ends


def _by_line(reported: frozenset[Place], recorded: frozenset[Place]) -> list[tuple[Place, Place]]:
    """Pairs of what is left on the same lines, each place in one of them."""
    left = set(recorded)
    pairs = []
    for place in () if EXACT else sorted(reported):
        if same := [other for other in left if other[:2] == place[:2]]:
            pairs.append((place, same[0]))
            left.remove(same[0])
    return pairs


def _seconds() -> float:
    """What the programs that have ended took of the processor."""
    times = os.times()
    return times.children_user + times.children_system


def _reported(trace: Trace) -> list[Place]:
    syncs = [sync for sync in trace.of(Sync) if sync.kind == "implicit" and not sync.origin]
    places = [sync.place for sync in syncs]
    return [(place.file, place.line, place.column, place.end_line, place.end_column) for place in places]


def main() -> int:
    """Score the programs that are named, or all."""
    parser = argparse.ArgumentParser(description="hold simulated runs against recordings of a GPU")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--set", choices=SETS, default="programs")
    parser.add_argument("--limit", type=float, default=900.0, metavar="SECONDS", help="for each program")
    parser.add_argument("--show", action="store_true", help="name the places that are missing or false")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recorded-") as folder:
        scores = compared(Truth(unpacked(options.set, Path(folder))), options)
    found, known = sum(len(made.found) for made in scores), sum(made.truth for made in scores)
    false = sum(len(made.false) for made in scores)
    print(f"{'all':28} {found:5} {known:5} {false:5}   recall {found / max(known, 1):.3f}")
    return 0 if all(made.status == 0 for made in scores) else 1


def compared(truth: Truth, options: argparse.Namespace) -> list[Score]:
    """Run and print programs."""
    scores = []
    print(f"{'program':28} {'found':>5} {'truth':>5} {'false':>5} {'seconds':>8}")
    for program in options.programs or truth.programs:
        scores.append(made := score(truth, program, options.limit))
        failed = f"  exit status {made.status}" if made.status else ""
        print(
            f"{program:28} {len(made.found):5} {made.truth:5} {len(made.false):5} {made.seconds:8.1f}{failed}",
            flush=True,
        )
        if options.show:
            for word, places in (("missed", made.missed), ("false", made.false)):
                for file, line, column, _, end in sorted(places):
                    print(f"  {word} {file}:{line}:{column}-{end}")
    return scores


if __name__ == "__main__":
    sys.exit(main())
