"""How many findings a run gives a verdict on.

    python benchmarks/tracer/court.py [--set programs|heldout] [--gpu] [--jobs N] [--json FILE] [--show] [PROGRAM...]

Each program of `benchmarks/accuracy` is traced as it was recorded (`truth.json.gz`), simulated or with `--gpu` on a
GPU, from its first step to its end. The findings that the default profile shows without a trace then get the
verdicts of the trace. It prints for each program, and for each rule, how many findings there are of each ruling, and

reach
    the share of findings with a verdict other than `undecided`, of those whose lines ran

`--show` names the findings that stay undecided, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.tracer.simulate import ROOT, Truth

RULINGS = ("confirmed", "confirmed, no cost", "refuted", "undecided", "not executed", "none")
WITHOUT_REACH = ("not executed", "none")


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding of the default profile with the ruling of a trace; `none` if the trace has no record of its lines."""

    program: str
    place: str
    code: str
    ruling: str
    why: str


def judged(folder: Path, program: str, arguments: Sequence[str], gpu: bool, limit: float) -> list[Judged]:
    """The findings in the files of one program. Raises CalledProcessError if the program or perflint fails."""
    files = sorted(folder.glob(f"{program.rpartition('/')[0]}/*.py")) if "/" in program else [folder / program]
    names = [str(file.relative_to(folder)) for file in files]
    with tempfile.TemporaryDirectory(prefix="court-") as place:
        trace = str(Path(place) / "trace.jsonl.gz")
        how = [] if gpu else ["--simulate"]
        _perflint(folder, limit, "trace", *how, "--warmup", "0", "--steps", "0", "--output", trace, program, *arguments)
        claims = {_key(finding): finding for finding in _findings(folder, limit, *names)}
        seen = {_key(finding): finding for finding in _findings(folder, limit, *names, "--trace", trace)}
    found = []
    for key in claims:
        verdict = seen[key]["verdict"] or {"ruling": "none", "why": "the trace has no record of these lines"}
        found.append(Judged(program, f"{key[0]}:{key[1]}:{key[2]}", key[3], verdict["ruling"], verdict["why"]))
    return found


def _key(finding: dict[str, Any]) -> tuple[str, int, int, str]:
    return os.path.basename(finding["path"]), finding["line"], finding["column"], finding["code"]


def _findings(folder: Path, limit: float, *arguments: str) -> list[dict[str, Any]]:
    profile = "audit" if "--trace" in arguments else "default"
    options = ("--profile", profile, "--output-format", "json")
    out = _perflint(folder, limit, "check", *arguments, *options, statuses=(0, 1))
    found: list[dict[str, Any]] = json.loads(out)["findings"]
    return found


def _perflint(folder: Path, limit: float, *arguments: str, statuses: tuple[int, ...] = (0,)) -> str:
    # The tensors are small: threads would wait for each other.
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "perflint", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit)
    if done.returncode not in statuses:
        print(done.stderr[-2000:], file=sys.stderr)
        done.check_returncode()
    return done.stdout


def reach(rulings: Counter[str]) -> float:
    """The share of findings with a verdict, of those whose lines ran."""
    ran = sum(count for ruling, count in rulings.items() if ruling not in WITHOUT_REACH)
    return (ran - rulings["undecided"]) / ran if ran else 1.0


def table(rows: Iterable[tuple[str, Counter[str]]], title: str) -> None:
    """Print the rulings by row."""
    print(f"{title:28} " + " ".join(f"{ruling[:13]:>13}" for ruling in RULINGS) + "   reach")
    for name, rulings in rows:
        print(f"{name:28} " + " ".join(f"{rulings[ruling]:13}" for ruling in RULINGS) + f"  {reach(rulings):6.3f}")


def main() -> int:
    """Judge the findings in the programs that are named, or in all."""
    parser = argparse.ArgumentParser(description="count the verdicts that runs give")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--set", choices=("programs", "heldout"), action="append", help="default: both")
    parser.add_argument("--gpu", action="store_true", help="run on a GPU instead of simulating one")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="programs at a time")
    parser.add_argument("--limit", type=float, default=900.0, metavar="SECONDS", help="for each run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the findings with their rulings")
    parser.add_argument("--show", action="store_true", help="name the findings that stay undecided")
    options = parser.parse_args()
    truths = [Truth(ROOT / "benchmarks" / "accuracy" / name) for name in options.set or ("programs", "heldout")]
    jobs = [
        (truth.folder, program, truth.programs[program]["arguments"])
        for truth in truths
        for program in truth.programs
        if not options.programs or program in options.programs
    ]
    found: list[Judged] = []
    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        running = [(job, pool.submit(judged, *job, options.gpu, options.limit)) for job in jobs]
        for job, future in running:
            try:
                found += future.result()
            except subprocess.SubprocessError as error:
                failed += 1
                print(f"{job[1]}: {error}", file=sys.stderr)
    by_program, by_rule = (
        [(name, Counter(each.ruling for each in found if getattr(each, key) == name)) for name in names]
        for key, names in (("program", [job[1] for job in jobs]), ("code", sorted({each.code for each in found})))
    )
    table(by_program, "program")
    print()
    table(by_rule, "rule")
    table([("all", Counter(each.ruling for each in found))], "")
    if options.show:
        for each in found:
            if each.ruling in ("undecided", "none"):
                print(f"{each.place} {each.code} {each.why}")
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
