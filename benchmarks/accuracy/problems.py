"""The share of the problems listed by readers (`unseen_problems.jsonl`) that perflint's findings touch, by set.

    python benchmarks/accuracy/problems.py FOLDER … [--show hidden] [--show silent]

Each folder holds checkouts of the projects in `unseen.md` at the commits named there, in folders with the names of the
repositories. A problem is shown if a finding of the default profile begins or ends at one of its lines, hidden
if only one of the audit profile does, else silent. `--show` lists these problems. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
OUTCOMES = ("shown", "hidden", "silent")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that a reader saw; `package` is a repository and its commit."""

    package: str
    path: str
    lines: tuple[int, ...]
    problem: str


def problems(text: str) -> list[Problem]:
    """The problems of a list in JSON lines."""
    read = map(json.loads, text.splitlines())
    return [Problem(each["package"], each["path"], tuple(each["lines"]), each["problem"]) for each in read]


def sets(text: str) -> dict[str, str]:
    """The set of each package that `unseen.md` lists."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        heading = re.match(r"## Set (\w+)", line)
        name = heading[1] if heading else name
        package = re.search(r"\S+@[0-9a-f]{10}", line) if line.startswith("- ") else None
        if package is not None:
            found[package[0]] = name
    return found


def outcome(problem: Problem, shown: list[tuple[int, int]], audited: list[tuple[int, int]]) -> str:
    """The outcome of a problem, from the first and last lines of the findings in its file."""
    if any(not {first, last}.isdisjoint(problem.lines) for first, last in shown):
        return "shown"
    return "hidden" if any(not {first, last}.isdisjoint(problem.lines) for first, last in audited) else "silent"


def table(found: dict[str, Counter[str]]) -> str:
    """The outcomes of each set and of all, in Markdown."""
    rows = ["| set | problems | shown | only in audit | silent |", "|---|---:|---:|---:|---:|"]
    total: Counter[str] = sum(found.values(), Counter())
    for name, counts in (*sorted(found.items()), ("all", total)):
        whole = counts.total()
        share = f" ({counts['shown'] / whole:.2f})"
        rows.append(f"| {name} | {whole} | {counts['shown']}{share} | {counts['hidden']} | {counts['silent']} |")
    return "\n".join(rows)


def _lines(root: Path, path: str, profile: str) -> list[tuple[int, int]]:
    """The first and last lines of the findings of a profile in a file."""
    options = ["--no-cache", "--exit-zero", "--profile", profile, "--output-format", "json"]
    command = [sys.executable, "-m", "perflint", "check", *options, str(root / path)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
    return [(each["line"], each["end_line"]) for each in json.loads(done.stdout)["findings"]]


def _root(folders: list[Path], package: str) -> Path | None:
    name = package.partition("@")[0].rpartition("/")[2]
    return next((folder / name for folder in folders if (folder / name).is_dir()), None)


def _outcomes(folders: list[Path], listed: list[Problem]) -> Iterator[tuple[Problem, str]]:
    places = dict.fromkeys((each.package, each.path) for each in listed)
    for package, path in places:
        root = _root(folders, package)
        if root is None:
            print(f"{package}: no checkout", file=sys.stderr)
            continue
        shown, audited = (_lines(root, path, profile) for profile in ("default", "audit"))
        for each in listed:
            if (each.package, each.path) == (package, path):
                yield each, outcome(each, shown, audited)


def main() -> int:
    """Score the lists and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="folders with checkouts")
    parser.add_argument("--show", action="append", choices=OUTCOMES, default=[], help="list the problems of an outcome")
    given = parser.parse_args()
    names = sets((HERE / "unseen.md").read_text(encoding="utf-8"))
    found: dict[str, Counter[str]] = {}
    for problem, outcome_ in _outcomes(given.folders, problems((HERE / "unseen_problems.jsonl").read_text("utf-8"))):
        found.setdefault(names[problem.package], Counter())[outcome_] += 1
        if outcome_ in given.show:
            print(f"{outcome_}: {problem.package} {problem.path}:{problem.lines[0]} {problem.problem}")
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
