"""Holds the numbers of perflint's messages against fresh measurements.

    python benchmarks/rules/estimates.py --measure times.json [--seed N]   (on a machine with a GPU)
    python benchmarks/rules/estimates.py --judge times.json [--output results.json]   (where perflint is installed)

Random layers, losses and loops, of sizes that `worth.toml` does not hold, are written as source and run:
`--measure` times each against its cure, `--judge` lets perflint check the source and compares each number
that it says for the line with the ratio that was measured. A case fails where they differ by more than
25%; a message without a number claims nothing.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cases import Case, cases

ALLOWED = 0.25
_NUMBER = re.compile(r"about (?:(?P<times>\d+(?:\.\d+)?) ×|(?P<percent>\d+)%)|(?P<none>not measurably) slower")


def measured(seed: int) -> dict[str, Any]:
    """The ratio of each case of a seed, with its spread."""
    import torch
    from sizes import captured
    from timing import OPTIONS, compared

    found: dict[str, dict[str, float]] = {}
    for case in cases(seed):
        gc.collect()
        torch.manual_seed(seed)
        torch.backends.cuda.matmul.allow_tf32 = case.name.endswith("tf32")
        bad, good = case.make()
        if case.device_time:
            bad, good = captured(bad), captured(good)
        runs = compared(bad, good, "operation" if case.device_time else "step")
        ratios = [left / right for left, right in runs]
        found[case.name] = {
            "ratio": round(statistics.median(ratios), 3),
            "low": round(min(ratios), 3),
            "high": round(max(ratios), 3),
            "good_ms": round(statistics.median(right for _, right in runs) * 1e3, 4),
        }
        print(case.name, found[case.name], flush=True)
    device = torch.cuda.get_device_name() if OPTIONS.device == "cuda" else "CPU"
    return {"seed": seed, "device": device, "torch": torch.__version__, "times": found}


def messages(given: list[Case]) -> dict[str, str]:
    """What `perflint check` says of each case's line: message, cost and help."""
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(given):
            Path(folder, f"case_{number}.py").write_text(case.source, encoding="utf-8")
        options = ["--isolated", "--profile", "audit", "--output-format", "json", "--no-cache"]
        command = [sys.executable, "-m", "perflint", "check", *options, folder]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    said: dict[str, str] = {}
    for finding in json.loads(done.stdout)["findings"]:
        case = given[int(Path(finding["path"]).stem.rpartition("_")[2])]
        if (finding["code"], finding["line"]) == (case.rule, case.line):
            said[case.name] = " ".join(filter(None, (finding["message"], finding.get("cost"), finding.get("help"))))
    missing = [case.name for case in given if case.name not in said]
    if missing:
        raise SystemExit(f"perflint finds nothing in {missing}")
    return said


def numbers(message: str) -> list[float]:
    """The ratios that a message gives."""
    found = []
    for match in _NUMBER.finditer(message):
        times, percent = match["times"], match["percent"]
        found.append(float(times) if times else 1 + float(percent) / 100 if percent else 1.0)
    return found


def judged(results: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each case with what perflint says, and its error against the measured ratio."""
    given = cases(results["seed"])
    said = messages(given)
    for case in given:
        times, estimates = results["times"][case.name], numbers(said[case.name])
        errors = [max(each, times["ratio"]) / min(each, times["ratio"]) - 1 for each in estimates]
        verdict = "no number" if not errors else "good" if max(errors) <= ALLOWED else "bad"
        row = {"case": case.name, "rule": case.rule, **times, "said": estimates, "verdict": verdict}
        yield {**row, "message": said[case.name]}


def main() -> None:
    """Measure, or judge what was measured."""
    parser = argparse.ArgumentParser(description="hold perflint's estimates against measurements")
    parser.add_argument("--measure", type=Path, metavar="FILE", help="time the cases, and write the times there")
    parser.add_argument("--judge", type=Path, metavar="FILE", help="compare perflint's messages with these times")
    parser.add_argument("--output", type=Path, help="where to write the judged cases")
    parser.add_argument("--seed", type=int, default=2026, help="of the cases (default: %(default)s)")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--quick", action="store_true", help="tiny sizes and few runs, to try the script out")
    options = parser.parse_args()
    if options.measure:
        from timing import OPTIONS

        OPTIONS.device, OPTIONS.quick = options.device, options.quick
        options.measure.write_text(json.dumps(measured(options.seed), indent=1) + "\n", encoding="utf-8")
    if options.judge:
        results = json.loads(options.judge.read_text(encoding="utf-8"))
        rows = list(judged(results))
        for row in rows:
            estimates = ", ".join(f"{number:g}" for number in row["said"]) or "–"
            print(f"| {row['case']} | {row['rule']} | {row['ratio']:.2f} | {estimates} | {row['verdict']} |")
        if options.output:
            facts = {key: value for key, value in results.items() if key != "times"}
            text = json.dumps({**facts, "cases": rows}, indent=1, ensure_ascii=False)
            options.output.write_text(text + "\n", encoding="utf-8")
        sys.exit(any(row["verdict"] == "bad" for row in rows))


if __name__ == "__main__":
    main()
