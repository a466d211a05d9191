"""Draws findings to read and judge, the same ones each time.

    python benchmarks/accuracy/draw.py --findings FILE timm==1.0.29=src/timm pytorch/examples@77f55b9121=src/examples
    python benchmarks/accuracy/draw.py --findings FILE --rule TPF1 [--count 25] [--context 6]

The first form runs `perflint check --profile audit` over folders, each with the name that `judged.jsonl` is to
call it by, and writes what it says to FILE, one finding a line. The second draws from FILE: for each rule up to
`--count` findings that nobody has judged, half of them, where there are as many, from those that the default
profile shows, `random.Random(0).sample` of each half sorted by place; and prints them with their code. What was
judged before is taken from the sample, not from what is drawn from: one more drawing goes on where it stood.
`--more N` draws again, from what the default profile shows and nobody has judged.

    python benchmarks/accuracy/draw.py --findings FILE --refresh

rewrites `judged.jsonl` after the rules have changed: each finding gets the profile that shows it now, and those
that are no longer reported are left out (of the packages in FILE; the others stay as they are).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

Finding = dict[str, Any]

JUDGED = Path(__file__).with_name("judged.jsonl")


def main() -> None:
    """Collect, or draw and print."""
    parser = argparse.ArgumentParser(description="draw findings to judge")
    parser.add_argument("source", nargs="*", metavar="NAME=FOLDER", help="check this folder")
    parser.add_argument("--findings", type=Path, required=True, metavar="FILE", help="where findings are kept")
    parser.add_argument("--rule", action="append", default=[], metavar="TPF…", help="only rules that begin so")
    parser.add_argument("--count", type=int, default=25, help="how many of each rule (default: 25)")
    parser.add_argument("--context", type=int, default=6, help="lines of code before and after (default: 6)")
    parser.add_argument("--more", type=int, metavar="N", help="instead, N more of what the default profile shows")
    parser.add_argument("--refresh", action="store_true", help="instead, bring judged.jsonl up to date")
    options = parser.parse_args()
    if options.source:
        found = [finding for source in options.source for finding in collect(*source.rsplit("=", 1))]
        options.findings.write_text("".join(json.dumps(each) + "\n" for each in found), encoding="utf-8")
        return
    found = read(options.findings)
    if options.refresh:
        kept = refreshed(read(JUDGED), found)
        JUDGED.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in kept), encoding="utf-8")
        return
    judged = {place(each) for each in read(JUDGED)}
    for rule, findings in by_rule(found, tuple(options.rule)):
        print(f"\n######## {rule}: {len(findings)} findings, {sum(map(is_default, findings))} by default")
        unread = [finding for finding in findings if place(finding) not in judged]
        drawn = draw(findings, options.count) if options.more is None else more(unread, options.more)
        for finding in drawn:
            if place(finding) not in judged:
                print(shown(finding, options.context))


def collect(name: str, folder: str) -> Iterator[Finding]:
    """What perflint says of a folder, in the profile audit; paths are relative to it, or around it for a package."""
    path = Path(folder)
    root, what = (path.parent, path.name) if (path / "__init__.py").exists() else (path, ".")
    command = [sys.executable, "-P", "-m", "perflint", "check", what, "--profile", "audit", "--isolated"]
    command += ["--exit-zero", "--output-format", "json"]
    # Exit status 2: some files could not be read, as standard error says; the others were checked.
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE)
    if done.returncode not in (0, 2):
        done.check_returncode()
    for finding in json.loads(done.stdout)["findings"]:
        kept = {key: finding[key] for key in ("path", "line", "message", "severity", "confidence", "heat")}
        yield {"rule": finding["code"], "package": name, "root": str(root.resolve()), **kept}


def is_default(finding: Finding) -> bool:
    """True if the default profile shows a finding."""
    hidden = finding["confidence"] == "low" or finding["heat"] == "cold" or finding["severity"] == "info"
    return not hidden


def place(finding: Finding) -> tuple[str, str, str, int]:
    """What tells findings apart, in judged.jsonl too."""
    return finding["rule"], finding["package"], finding["path"], finding["line"]


def refreshed(judged: Iterable[Finding], found: Iterable[Finding]) -> Iterator[Finding]:
    """What was judged and is still found, with the profile that shows it now."""
    places: dict[tuple[str, str, str, int], bool] = {}
    packages = set()
    for finding in found:
        packages.add(finding["package"])
        places[place(finding)] = places.get(place(finding), False) or is_default(finding)
    for finding in judged:
        by_default = places.get(place(finding))
        if finding["package"] not in packages:
            yield finding
        elif by_default is not None:
            yield {**finding, "profile": "default" if by_default else "audit"}


def by_rule(found: Iterable[Finding], beginnings: tuple[str, ...]) -> Iterator[tuple[str, list[Finding]]]:
    """The findings of each rule, sorted by place, one for each line."""
    rules: defaultdict[str, dict[tuple[str, str, str, int], Finding]] = defaultdict(dict)
    for finding in found:
        if finding["rule"].startswith(beginnings or ""):
            rules[finding["rule"]].setdefault(place(finding), finding)
    for rule, places in sorted(rules.items()):
        yield rule, [places[key] for key in sorted(places)]


def draw(findings: list[Finding], count: int) -> list[Finding]:
    """A sample of `count`, half of them (more, where the rest are too few) shown by the default profile."""
    first = [each for each in findings if is_default(each)]
    rest = [each for each in findings if not is_default(each)]
    of_first = min(len(first), max(count - count // 2, count - len(rest)))
    of_rest = min(len(rest), count - of_first)
    return [*Random(0).sample(first, of_first), *Random(0).sample(rest, of_rest)]


def more(unread: list[Finding], count: int) -> list[Finding]:
    """A second sample, of findings that nobody has judged and that the default profile shows."""
    first = [each for each in unread if is_default(each)]
    return Random(1).sample(first, min(count, len(first)))


def shown(finding: Finding, context: int) -> str:
    """A finding with its code, as lines to read."""
    path = Path(finding["root"]) / finding["path"]
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    line = finding["line"]
    kind = "default" if is_default(finding) else "audit"
    head = f"\n== {finding['rule']} {finding['package']} {finding['path']}:{line} [{kind}] "
    head += f"{finding['confidence']} {finding['heat']}: {finding['message']}"
    around = range(max(1, line - context), min(len(lines), line + context) + 1)
    return "\n".join([head, *(f"{'>' if n == line else ' '} {n:5} {lines[n - 1]}" for n in around)])


def read(path: Path) -> list[Finding]:
    """Lines of JSON."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
