"""Holds perflint against what maintainers of public projects removed, and what they kept on purpose.

    python benchmarks/accuracy/history/run.py MIRRORS [--set given|own|drawn|second|third] [--show missed|noisy|traps]

Five sets are scored one after the other: the given one (`cases.jsonl`, `traps.jsonl`), our own
(`own_cases.jsonl`, `own_traps.jsonl`), which has more of the kinds that are rare in the first, and three of projects
that were drawn (`drawn_cases.jsonl`, `drawn_traps.jsonl`; `second_…`; `third_…`).

MIRRORS is a folder with git mirrors of the projects, `owner+name` each (`git clone --mirror`); cases of
projects that are not there are left out, and named. No code is kept here: the files before and after each
commit are taken from the mirrors, and checked one by one, without the rest of their projects.

A case is found where a finding of its kind's family touches the statements before, in the profile `audit`
and in `default`; what replaced them is to be silent in `default`, as are the lines of `traps.jsonl` whose
verdict is `fp`. Only cases of high confidence that a current torch still knows (`modern`) count.

`waits.jsonl` has the lines of some cases that were run on a GPU after the change, and wait there (`waits.py`). They
count as noise as any other; the rate without them is printed besides.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SETS = {"given": "", "own": "own_", "drawn": "drawn_", "second": "second_", "third": "third_"}
"""How the names of the files of each set begin."""

Case = dict[str, Any]
Finding = dict[str, Any]
Spans = Sequence[Sequence[int]]

WAITS = ("sync", "transfer", "allocation", "graph-break", "capture")
COPIES = ("transfer", "allocation", "memory", "sync", "compute")
CODES = {
    "no-inference-mode": ("TPF50",),
    "no-eval": ("TPF50",),
    "conv-bias-bn": ("TPF301",),
    "channels-multiple": ("TPF35", "TPF37"),
    "channels-last": ("TPF354",),
    "amp-tf32": ("TPF35", "TPF902"),
    "dataloader": ("TPF40",),
    "zero-grad": ("TPF602",),
    "optimizer-fused-foreach": ("TPF60",),
    "accumulate-graph": ("TPF210", "TPF101"),
    "empty-cache": ("TPF122", "TPF123"),
    "torchscript": ("TPF901", "TPF377", "TPF708"),
    "python-loop": ("",),
    "repeated-work": ("",),
    "other": ("",),
}
"""The beginnings of the codes that speak of a kind; other kinds are waits (`cuda-graph`: also TPF8)."""


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="score perflint on what maintainers removed")
    parser.add_argument("mirrors", type=Path, metavar="MIRRORS")
    parser.add_argument("--show", choices=["missed", "noisy", "traps"], help="list what costs the score")
    parser.add_argument("--set", choices=SETS, action="append", help="only this set")
    options = parser.parse_args()
    for title in options.set or SETS:
        prefix = SETS[title]
        cases = [case for case in read(f"{prefix}cases.jsonl") if case["confidence"] == "high" and case["modern"]]
        traps = [trap for trap in read(f"{prefix}traps.jsonl") if trap["verdict"] == "fp"]
        print(f"\n{title.capitalize()}\n")
        with tempfile.TemporaryDirectory(prefix="perflint-history-") as folder:
            score(Path(folder), options.mirrors, cases, traps, options.show)


def read(name: str) -> list[Case]:
    """The lines of a data file."""
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def score(folder: Path, mirrors: Path, cases: list[Case], traps: list[Case], show: str | None) -> None:
    """Print the rates by kind, of all and of the traps."""
    before = {case["id"]: written(folder, mirrors, case, "parent") for case in cases}
    after = {case["id"]: written(folder, mirrors, case, "commit") for case in cases}
    trapped = {trap["id"]: written(folder, mirrors, trap, "commit") for trap in traps}
    cases = [case for case in cases if before[case["id"]]]
    traps = [trap for trap in traps if trapped[trap["id"]]]
    audit, default = check(before.values(), "audit"), check(before.values(), "default")
    replaced, kept = check(after.values(), "default"), check(trapped.values(), "default")

    found = {c["id"]: touches(audit[before[c["id"]]], c["before_spans"], c["kind"]) for c in cases}
    shown = {c["id"]: touches(default[before[c["id"]]], c["before_spans"], c["kind"]) for c in cases}
    noisy = {c["id"]: touches(replaced[after[c["id"]]], c["after_spans"], c["kind"]) for c in cases if c["after_spans"]}
    alarms = {t["id"]: touches(kept[trapped[t["id"]]], [(n, n) for n in t["lines"]], t["kind"]) for t in traps}

    print("| kind | cases | found | in default | silent after |\n|---|---:|---:|---:|---:|")
    by_kind: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        by_kind[case["kind"]].append(case["id"])
    everything = [case["id"] for case in cases]
    for kind, ids in [*sorted(by_kind.items()), ("**all**", everything)]:
        after_ids = [one for one in ids if one in noisy]
        rates = (rate(found, ids), rate(shown, ids), 1 - rate(noisy, after_ids))
        print(f"| {kind} | {len(ids)} | " + " | ".join(f"{value:.3f}" for value in rates) + " |")
    waiting = {each["id"]: each["lines"] for each in read("waits.jsonl")}
    refuted = {c["id"] for c in cases if on_lines(waiting.get(c["id"], ()), c["after_spans"])} & noisy.keys()
    rest = [one for one in noisy if one not in refuted]
    if refuted:
        print(f"\nSilent after, without {len(refuted)} that were seen to wait on a GPU: {1 - rate(noisy, rest):.3f}")
    print(f"\nTraps: {len(traps)}, silent {1 - rate(alarms, list(alarms)):.3f}")
    costly = {"missed": {one: not hit for one, hit in found.items()}, "noisy": noisy, "traps": alarms}
    why = {case["id"]: case["why"] for case in cases} | {trap["id"]: trap["why_kept"] for trap in traps}
    for one, costs in costly.get(show or "", {}).items():
        if costs:
            print(one, why[one])


def written(folder: Path, mirrors: Path, case: Case, revision: str) -> str:
    """The file of a case at a revision, written below the folder; empty where the mirror or the file is missing."""
    project = mirrors / case["repo"].replace("/", "+")
    inner = project / "repo"
    mirror = inner if inner.is_dir() else project
    if not mirror.is_dir():
        sys.stderr.write(f"no mirror of {case['repo']}\n")
        return ""
    command = ["git", "-C", str(mirror), "show", f"{case[revision]}:{case['path']}"]
    shown = subprocess.run(command, capture_output=True)
    if shown.returncode:
        return ""
    path = folder / revision / case["id"] / "file.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(shown.stdout)
    return str(path)


def check(files: Iterable[str], profile: str) -> dict[str, list[Finding]]:
    """The findings of some files in a profile."""
    found: dict[str, list[Finding]] = defaultdict(list)
    paths = [path for path in files if path]
    command = [sys.executable, "-m", "perflint", "check", "--isolated", "--exit-zero", "--output-format", "json"]
    if paths:
        done = subprocess.run([*command, "--profile", profile, *paths], capture_output=True, text=True)
        for finding in json.loads(done.stdout)["findings"]:
            found[finding["path"]].append(finding)
    return found


def family(kind: str) -> Callable[[Finding], bool]:
    """True if a finding is of what a kind is about."""
    if kind in CODES:
        return lambda finding: finding["code"].startswith(CODES[kind])
    if kind == "cuda-graph":
        return lambda finding: finding["code"].startswith("TPF8") or finding["effect"] in WAITS
    effects = COPIES if kind == "redundant-copy" else WAITS
    return lambda finding: finding["effect"] in effects


def touches(findings: Iterable[Finding], spans: Spans, kind: str) -> bool:
    """True if a finding of a kind's family stands on some lines."""
    belongs = family(kind)
    return any(belongs(f) and f["line"] <= end and f["end_line"] >= start for f in findings for start, end in spans)


def on_lines(lines: Iterable[int], spans: Spans) -> bool:
    """True if one of some lines is within some spans."""
    return any(start <= line <= end for line in lines for start, end in spans)


def rate(results: dict[str, bool], ids: Sequence[str]) -> float:
    """The share of some cases for which something holds."""
    return sum(results[one] for one in ids) / max(1, len(ids))


if __name__ == "__main__":
    main()
