"""Holds the predicted heat of findings against the steps in which their lines ran.

    python benchmarks/accuracy/heat.py [--set programs|heldout] [--jobs N] [--show] [--json FILE] [PROGRAM...]

Each program of a set runs as it was recorded (`truth.json.gz`), on a simulated GPU, from its first step to its end.
The trace counts in how many of the first recorded steps each line ran. The findings of the profile `audit` in the
program have a heat, which is predicted from the source. Findings on lines that did not run are left out, and so are
programs in which no step was counted, and rules that report a construction or a setting whose cost is in the steps
(`COSTS_ELSEWHERE`). A finding is on the first line of its span. It ran

often
    in at least half of the counted steps
sometimes
    in fewer
never
    in none of them: before, after or in later steps

The first table has a row for each heat. Precision is the share of the findings predicted as hot that ran often; recall
is the share of those that ran often that are predicted as hot. The second table has a row for each unit of the
judgement, and the share of the findings whose unit fits: those that are predicted for each step, or for a part of one,
ran often, and the others did not. `--show` names the findings that cost either.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.packages import check
from benchmarks.tracer.simulate import ROOT, Truth, simulated
from perflint.tracer.elsewhere import COSTS_ELSEWHERE
from perflint.tracer.events import CandidateLine

HEATS = ("hot", "warm", "cold")
OBSERVED = ("often", "sometimes", "never")
OF_STEPS = ("layer", "microbatch", "item", "step")
"""Units of code that runs in each step of a training; the others run in some steps, or between them."""


@dataclass(frozen=True, slots=True)
class Row:
    """A finding whose line ran."""

    place: str
    code: str
    heat: str
    frequency: str
    """The unit of the judgement; empty if the finding has none."""
    observed: str
    steps: int
    """The number of counted steps in which the line ran."""
    of: int
    """The number of counted steps."""


def observed(line: CandidateLine, counted: int) -> str:
    """How often a line ran, in one of the words of `OBSERVED`."""
    if 2 * line.steps >= counted:
        return "often"
    return "sometimes" if line.steps else "never"


def rows_of(truth: Truth, program: str, limit: float) -> list[Row]:
    """The findings of one program on lines that ran. Raises RuntimeError if it cannot be traced."""
    trace, status = simulated(truth.folder, program, truth.programs[program]["arguments"], limit)
    if trace is None or status:
        raise RuntimeError(f"{program}: exit status {status}")
    counted = trace.header.line_steps
    ran = {(line.file, line.line): line for line in trace.of(CandidateLine)}
    if not counted:
        print(f"{program}: no step was counted", file=sys.stderr)
        return []
    rows = []
    for finding in check(truth.folder, program.rpartition("/")[0] or program, "audit")["findings"]:
        file = finding["path"].replace("\\", "/")
        line = ran.get((file, finding["line"]))
        if line is not None and finding["code"] not in COSTS_ELSEWHERE:
            place = f"{file}:{finding['line']}:{finding['column']}"
            often = observed(line, counted)
            unit = (finding["judgement"] or {"frequency": ""})["frequency"]
            rows.append(Row(place, finding["code"], finding["heat"], unit, often, line.steps, counted))
    return rows


def table(rows: Sequence[Row]) -> str:
    """The findings by predicted and observed heat, in Markdown."""
    counts = Counter((row.heat, row.observed) for row in rows)
    lines = [f"| predicted | {' | '.join(OBSERVED)} |", "|---|" + "---:|" * len(OBSERVED)]
    lines += [f"| {heat} | {' | '.join(str(counts[heat, seen]) for seen in OBSERVED)} |" for heat in HEATS]
    return "\n".join(lines)


def by_unit(rows: Sequence[Row]) -> str:
    """The findings by predicted unit and observed heat, in Markdown, and the share of those that fit."""
    told = [row for row in rows if row.frequency]
    counts = Counter((row.frequency, row.observed) for row in told)
    lines = [f"| unit | {' | '.join(OBSERVED)} |", "|---|" + "---:|" * len(OBSERVED)]
    units = sorted({row.frequency for row in told})
    lines += [f"| {unit} | {' | '.join(str(counts[unit, seen]) for seen in OBSERVED)} |" for unit in units]
    fit = sum((row.frequency in OF_STEPS) == (row.observed == "often") for row in told)
    return "\n".join([*lines, "", f"{fit} of {len(told)} fit ({fit / max(len(told), 1):.3f})"])


def scores(rows: Sequence[Row]) -> tuple[float, float]:
    """The precision and the recall of `hot`."""
    hot = [row for row in rows if row.heat == "hot"]
    often = [row for row in rows if row.observed == "often"]
    both = sum(row.observed == "often" for row in hot)
    return both / max(len(hot), 1), both / max(len(often), 1)


def main() -> int:
    """Score the programs that are named, or all of the sets."""
    parser = argparse.ArgumentParser(description="hold predicted heat against the steps in which lines ran")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--set", choices=("programs", "heldout"), action="append", help="default: both")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="programs at a time")
    parser.add_argument("--limit", type=float, default=900.0, metavar="SECONDS", help="for each run")
    parser.add_argument("--show", action="store_true", help="name the findings that cost precision or recall")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the findings with both heats")
    options = parser.parse_args()
    failed, everything = 0, []
    for name in options.set or ("programs", "heldout"):
        truth = Truth(ROOT / "benchmarks" / "accuracy" / name)
        programs = [each for each in truth.programs if not options.programs or each in options.programs]
        rows = []
        with ThreadPoolExecutor(options.jobs) as pool:
            for future in [pool.submit(rows_of, truth, program, options.limit) for program in programs]:
                try:
                    rows += future.result()
                except RuntimeError as error:
                    failed += 1
                    print(error, file=sys.stderr)
        precision, recall = scores(rows)
        print(f"\n`{name}`: {len(rows)} findings, hot: precision {precision:.3f}, recall {recall:.3f}\n\n{table(rows)}")
        print(f"\n{by_unit(rows)}")
        everything += rows
    if options.show:
        for row in everything:
            if (row.heat == "hot") != (row.observed == "often"):
                print(f"{row.place} {row.code} {row.heat}: {row.steps} of {row.of} steps, {row.observed}")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in everything], indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
