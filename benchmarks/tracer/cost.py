"""Is what the tracer says a sync costs what a step takes longer with it?

    python benchmarks/tracer/cost.py [--rounds N] [--jobs N] [--output FILE] [CASE ...]

`planted.py` runs under `perflint trace`, and when that has let go it times its own steps with and without
its planted syncs, by turns: the difference is the truth, to which the costs are held that the trace
reports for the planted lines. Both are of one process, because one process is as much as a third faster
at launching than the next. Of several plants in a step the sum is judged; what a step saves where only
one goes is shown beside it.

Exits with 1 where a reported cost is not within 15% of the truth (or 1% of the step, which is no
difference), or of plants without effect more than 1% of the step.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import HERE, ROOT, Spread, environment, log, measured, run, write

sys.path.insert(0, str(ROOT))

from perflint.tracer.events import Sync
from perflint.tracer.file import read_trace
from perflint.tracer.trace import Trace

TOLERANCE = 0.15
NOTHING = 0.01
"""The share of a step below which a cost does not count."""
CLEAR = 0.5
"""An effect is known where it is at least so much of its median in each round."""
MARK = "# plant: "


@dataclass(frozen=True, slots=True)
class Verdict:
    """A case: milliseconds per step."""

    step: Spread
    """Without the plants."""
    truth: Spread
    """What they add."""
    reported: Spread
    """What the trace says that they cost."""
    has_effect: bool

    @property
    def is_met(self) -> bool | None:
        """True if the trace tells the truth; None where the times say too little to know."""
        nothing = NOTHING * self.step.median
        if not self.has_effect:
            return self.reported.median <= nothing
        if self.truth.low < CLEAR * self.truth.median:
            return None
        return abs(self.reported.median - self.truth.median) <= max(TOLERANCE * self.truth.median, nothing)

    def to_json(self) -> dict[str, Any]:
        """Numbers to keep."""
        spreads = {name: getattr(self, name).to_json() for name in ("step", "truth", "reported")}
        is_known = self.has_effect and self.is_met is not None
        ratio = round(self.reported.median / self.truth.median, 3) if is_known else None
        return {**spreads, "ratio": ratio, "met": self.is_met}


def plant_of(text: str) -> str:
    """The plant that a line names; empty where it is none."""
    return text.partition(MARK)[2]


def reported(trace: Trace) -> dict[str, float]:
    """What the trace says that each plant costs."""
    found = {}
    for place in {sync.place for sync in trace.of(Sync)}:
        if name := plant_of(place.text):
            found[name] = found.get(name, 0.0) + (trace.cost_ms(place) or 0.0)
    return found


def judge(times: Mapping[str, Sequence[float]], costs: Iterable[Mapping[str, float]], has_effect: bool) -> Verdict:
    """Hold the sums of reported costs against the differences of times with all plants and with none."""
    differences = [with_ - without for with_, without in zip(times["all"], times["none"], strict=True)]
    sums = [sum(row.values()) for row in costs]
    return Verdict(Spread.of(times["none"]), Spread.of(differences), Spread.of(sums), has_effect)


def each(times: Mapping[str, Sequence[float]], costs: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Of several plants: what a step saves where only one goes, and what is reported for it."""
    found = {}
    for variant, without in times.items():
        name = variant.removeprefix("without ")
        if name != variant:
            saved = Spread.of(all_ - less for all_, less in zip(times["all"], without, strict=True))
            said = Spread.of(row.get(name, 0.0) for row in costs)
            found[name] = {"saved_alone": saved.to_json(), "reported": said.to_json()}
    return found


def cases() -> dict[str, bool]:
    """The cases of `planted.py`, and whether their plants have an effect. Reads it: running it takes a GPU."""
    names: dict[str, Any] = {}
    for node in ast.parse((HERE / "planted.py").read_text()).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            names["CASES"] = [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id == "NO_EFFECT":
                names["NO_EFFECT"] = ast.literal_eval(node.value)
    return {str(name): name not in names["NO_EFFECT"] for name in names["CASES"]}


def measure(name: str, gpu: int, rounds: int) -> dict[str, Any]:
    """Trace a case and time it, in one process."""
    trace = ["-m", "perflint", "trace", "--warmup", "10", "--steps", "20", "--window", "5"]
    program = [HERE / "planted.py", name, "--truth", "truth.json", "--rounds", str(rounds)]
    with tempfile.TemporaryDirectory(prefix="cost-") as folder:
        there = Path(folder)
        run([*trace, *program], there, gpu)
        times = json.loads((there / "truth.json").read_text())
        costs = reported(read_trace(there / "perflint-trace.jsonl.gz"))
    verdict = judge(times, [costs], cases()[name])
    found = verdict.to_json() | {"each": each(times, [costs])}
    log(f"{name}: {found}")
    return found


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """For the documentation."""
    rows = ["| case | ms per step | effect | reported | ratio |", "|---|---:|---:|---:|---:|"]
    for name, row in found.items():
        step, truth, said = (row[key] for key in ("step", "truth", "reported"))
        ratio = f"{row['ratio']:.2f}" if row["ratio"] is not None else "no effect" if row["met"] else "not known"
        spread = f"{truth[0]:.3f} ({truth[1]:.3f} to {truth[2]:.3f})"
        mark = " ✗" if row["met"] is False else ""
        rows.append(f"| {name} | {step[0]:.2f} | {spread} | {said[0]:.3f} | {ratio}{mark} |")
    return "\n".join(rows)


def main() -> int:
    """Measure, print, write; the exit status."""
    parser = argparse.ArgumentParser(description="hold reported costs against timed ones")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(cases()))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="programs that start at a time; one runs on a GPU")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "cost.json")
    options = parser.parse_args()
    chosen = options.cases or list(cases())
    found = measured(measure, chosen, options.jobs, options.rounds)
    write(options.output, {**environment(sys.argv[1:]), "rounds": options.rounds, "cases": found})
    print(table(found))
    return int(len(found) < len(chosen) or any(row["met"] is False for row in found.values()))


if __name__ == "__main__":
    sys.exit(main())
