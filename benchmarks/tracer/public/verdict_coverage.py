"""How many findings a run gives a verdict on.

Each program is traced from its first step to its end, simulated or with `--gpu` on a GPU. The findings that the default
profile shows without a trace then get the verdicts of the trace. For each program and each rule, the tables have the
number of findings of each ruling, and

reach
    the share of findings with a verdict other than `undecided`, of those whose lines ran

`--show` names the findings that stay undecided, with the reason. `--json` writes the environment, the figures of each
program (or why it failed) and all findings with their rulings. `--traces` keeps the traces in a folder; a program whose
trace is there is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.tracer.common import environment
from benchmarks.tracer.simulate import ROOT

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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the run of a program gave: its findings with rulings, or the end of the error message."""

    program: str
    seconds: float
    found: tuple[Judged, ...] = ()
    failure: str = ""

    def to_json(self) -> dict[str, Any]:
        """The figures of the program."""
        if self.failure:
            return {"seconds": round(self.seconds), "failure": self.failure}
        rulings = Counter(each.ruling for each in self.found)
        counts = {ruling: rulings[ruling] for ruling in RULINGS}
        return {"seconds": round(self.seconds), "findings": len(self.found)} | counts | {"reach": reach(rulings)}


@dataclass(frozen=True, slots=True)
class Run:
    """A program, where and how it runs, and the files whose findings are judged."""

    program: str
    folder: Path
    script: str
    arguments: tuple[str, ...]
    files: tuple[str, ...]
    modules: tuple[str, ...] = ()
    """Folders of modules that it imports."""

    def outcome(self, gpu: bool, limit: float, traces: Path | None = None) -> Outcome:
        """Trace the program, or take its trace out of the folder, and judge the findings."""
        began = time.perf_counter()
        try:
            if traces:
                found = self._judged(gpu, limit, traces / f"{self.program.replace('/', '-')}.jsonl.gz")
            else:
                with tempfile.TemporaryDirectory(prefix="verdicts-") as place:
                    found = self._judged(gpu, limit, Path(place) / "trace.jsonl.gz")
        except subprocess.SubprocessError as error:
            failure = (getattr(error, "stderr", "") or str(error))[-1000:]
            return Outcome(self.program, time.perf_counter() - began, failure=failure)
        return Outcome(self.program, time.perf_counter() - began, found)

    def _judged(self, gpu: bool, limit: float, trace: Path) -> tuple[Judged, ...]:
        """The findings in the files. Raises SubprocessError if the program or perflint fails."""
        if not trace.exists():
            part = trace.with_name(f"part-{trace.name}")
            options = [*([] if gpu else ["--simulate"]), "--warmup", "0", "--steps", "0", "--output", str(part)]
            self._perflint(limit, "trace", *options, self.script, *self.arguments)
            part.rename(trace)
        claims = {_key(finding): finding for finding in self._findings(limit)}
        seen = {_key(finding): finding for finding in self._findings(limit, "--trace", str(trace))}
        found = []
        for key in claims:
            verdict = seen[key]["verdict"] or {"ruling": "none", "why": "the trace has no record of these lines"}
            place = f"{key[0]}:{key[1]}:{key[2]}"
            found.append(Judged(self.program, place, key[3], verdict["ruling"], verdict["why"]))
        return tuple(found)

    def _findings(self, limit: float, *arguments: str) -> list[dict[str, Any]]:
        profile = "audit" if "--trace" in arguments else "default"
        options = ("--profile", profile, "--output-format", "json")
        out = self._perflint(limit, "check", *self.files, *arguments, *options, statuses=(0, 1))
        found: list[dict[str, Any]] = json.loads(out)["findings"]
        return found

    def _perflint(self, limit: float, *arguments: str, statuses: tuple[int, ...] = (0,)) -> str:
        # The tensors are small: threads would wait for each other.
        path = os.pathsep.join((str(ROOT), *self.modules))
        variables = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "perflint", *arguments]
        done = subprocess.run(command, cwd=self.folder, env=variables, capture_output=True, text=True, timeout=limit)
        if done.returncode not in statuses:
            done.check_returncode()
        return done.stdout


def _key(finding: dict[str, Any]) -> tuple[str, int, int, str]:
    return finding["path"], finding["line"], finding["column"], finding["code"]


def reach(rulings: Counter[str]) -> float:
    """The share of findings with a verdict, of those whose lines ran."""
    ran = sum(count for ruling, count in rulings.items() if ruling not in WITHOUT_REACH)
    return (ran - rulings["undecided"]) / ran if ran else 1.0


def table(rows: Iterable[tuple[str, Counter[str]]], title: str) -> None:
    """Print the rulings by row."""
    print(f"{title:28} " + " ".join(f"{ruling[:13]:>13}" for ruling in RULINGS) + "   reach")
    for name, rulings in rows:
        print(f"{name:28} " + " ".join(f"{rulings[ruling]:13}" for ruling in RULINGS) + f"  {reach(rulings):6.3f}")


def add_options(parser: argparse.ArgumentParser) -> None:
    """How the programs run, and what is printed."""
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--gpu", action="store_true", help="run on a GPU instead of simulating one")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="programs at a time")
    parser.add_argument("--limit", type=float, default=900.0, metavar="SECONDS", help="for each run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the findings with their rulings")
    parser.add_argument("--traces", type=Path, metavar="DIR", help="keep the traces, and use those that are there")
    parser.add_argument("--show", action="store_true", help="name the findings that stay undecided")


def judge(runs: Sequence[Run], options: argparse.Namespace) -> int:
    """Run the programs and print the tables. Returns 1 if a program failed, else 0."""
    if options.traces:
        options.traces.mkdir(parents=True, exist_ok=True)
        options.traces = options.traces.resolve()
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda run: run.outcome(options.gpu, options.limit, options.traces), runs))
    for outcome in outcomes:
        if outcome.failure:
            print(f"{outcome.program}: {outcome.failure}", file=sys.stderr)
    found = [each for outcome in outcomes for each in outcome.found]
    codes = sorted({each.code for each in found})
    table([(one.program, Counter(each.ruling for each in one.found)) for one in outcomes if not one.failure], "program")
    print()
    table([(code, Counter(each.ruling for each in found if each.code == code)) for code in codes], "rule")
    table([("all", Counter(each.ruling for each in found))], "")
    if options.show:
        for each in found:
            if each.ruling in ("undecided", "none"):
                print(f"{each.place} {each.code} {each.why}")
    if options.json:
        document = environment(sys.argv[1:]) | {
            "programs": {outcome.program: outcome.to_json() for outcome in outcomes},
            "findings": [asdict(each) for each in found],
        }
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 1 if any(outcome.failure for outcome in outcomes) else 0
