"""Does the tracer see every sync that torch's sync debug mode reports, and at the right place?

    python benchmarks/tracer/sites.py [--jobs N] [--output FILE] [PROGRAM ...]

Each program runs twice: in `record_plain.py`, which has no part of perflint, and in
`perflint trace --warmup 0 --steps 0`. The sets of places (file, lines, columns) are compared; what is missing
and what is too much is printed. The programs are the twelve of benchmarks/accuracy/programs.zip and
`pageable_copies.py`, in which the lines with copies that are to be found are marked.

Exits with 1 where less than 99% are found, or where copies are missed or too many.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from common import HERE, ROOT, environment, log, measured, run, write

sys.path.insert(0, str(ROOT))

from benchmarks.accuracy.recorded import unpacked
from perflint.tracer.events import PageableCopy, Place, Sync
from perflint.tracer.file import read_trace

PLANTED = "pageable_copies.py"
ENOUGH = 0.99


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """A place: lines from 1, columns in bytes from 0, the end exclusive."""

    file: str
    line: int
    end_line: int
    column: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was found of what was there, and how often."""

    sites: int
    found: int
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    hits: int
    hits_found: int
    elsewhere: int
    """Reports without a frame of the files that count."""


def compare(plain: dict[Site, int], traced: dict[Site, int], elsewhere: int = 0) -> Comparison:
    """Hold what the tracer saw against what the mode reported by itself."""
    return Comparison(
        len(plain),
        len(plain.keys() & traced.keys()),
        tuple(_shown(site) for site in sorted(plain.keys() - traced.keys())),
        tuple(_shown(site) for site in sorted(traced.keys() - plain.keys())),
        sum(plain.values()),
        sum(min(count, traced.get(site, 0)) for site, count in plain.items()),
        elsewhere,
    )


def _shown(site: Site) -> str:
    return f"{Path(site.file).name}:{site.line}:{site.column}-{site.end_line}:{site.end_column}"


def plain_sites(document: dict[str, Any]) -> dict[Site, int]:
    """The sites of `record_plain.py`."""
    return {Site(*row[:-1]): row[-1] for row in document["rows"]}


def traced_sites(syncs: Iterable[Sync], below: str) -> dict[Site, int]:
    """The sites of implicit syncs in the files below a folder, in steps and outside."""
    found: dict[Site, int] = {}
    for sync in syncs:
        if sync.kind == "implicit" and sync.place.file.startswith(below):
            site = _site(sync.place)
            found[site] = found.get(site, 0) + sync.hits.steps + sync.hits.outside
    return found


def _site(place: Place) -> Site:
    lines = _lines(place.file)
    start, end = (_bytes(lines, *at) for at in ((place.line, place.column), (place.end_line, place.end_column)))
    return Site(place.file, place.line, place.end_line, start, end)


@cache
def _lines(file: str) -> list[str]:
    return Path(file).read_text(encoding="utf-8").splitlines()


def _bytes(lines: list[str], line: int, column: int) -> int:
    return len(lines[line - 1][: column - 1].encode()) if line <= len(lines) else column - 1


def copies(marked: Path, seen: Iterable[PageableCopy]) -> Comparison:
    """Hold the copies that the tracer saw against the marks of a program, by line."""
    lines = enumerate(marked.read_text(encoding="utf-8").splitlines(), 1)
    planted = {Site(str(marked), number, number, 0, 0): 1 for number, line in lines if line.endswith("# pageable")}
    found = {Site(copy.place.file, copy.place.line, copy.place.line, 0, 0): 1 for copy in seen}
    return compare(planted, found)


def measure(script: Path, gpu: int) -> dict[str, Any]:
    """Run a program both ways."""
    with tempfile.TemporaryDirectory(prefix="sites-") as folder:
        there = Path(folder)
        run([HERE / "record_plain.py", "--output", "plain.json", script], there, gpu)
        run(["-m", "perflint", "trace", "--warmup", "0", "--steps", "0", "--own", script.parent, script], there, gpu)
        trace = read_trace(there / "perflint-trace.jsonl.gz")
        document = json.loads((there / "plain.json").read_text())
    traced = traced_sites(trace.of(Sync), f"{script.parent}/")
    found = asdict(compare(plain_sites(document), traced, document["without_frame"]))
    found["explicit"] = len({sync.place for sync in trace.of(Sync) if sync.kind == "explicit"})
    if script.name == PLANTED:
        found["copies"] = asdict(copies(script, trace.of(PageableCopy)))
    log(f"{script.name}: {found['found']} of {found['sites']}, {len(found['extra'])} extra")
    return found


def table(programs: dict[str, dict[str, Any]]) -> str:
    """For the documentation."""
    rows = ["| program | sites | found | missing | extra | syncs | counted |", "|---|---:|---:|---:|---:|---:|---:|"]
    for name, row in programs.items():
        numbers = (row["sites"], row["found"], len(row["missing"]), len(row["extra"]), row["hits"], row["hits_found"])
        rows.append(f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} |")
    return "\n".join(rows)


def main() -> int:
    """Measure, print, write; the exit status."""
    parser = argparse.ArgumentParser(description="hold the tracer's syncs against those that torch reports")
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "sites.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recorded-") as folder:
        every = [*unpacked("programs", Path(folder)).glob("*.py"), HERE / PLANTED]
        by_name = {path.name: path.resolve() for path in options.programs or sorted(every)}
        found = measured(lambda name, gpu: measure(by_name[name], gpu), list(by_name), options.jobs)
    sites, seen = (sum(row[key] for row in found.values()) for key in ("sites", "found"))
    share = seen / sites if sites else 0.0
    planted = [row["copies"] for row in found.values() if "copies" in row]
    write(
        options.output,
        {**environment(sys.argv[1:]), "sites": sites, "found": seen, "share": round(share, 4), "programs": found},
    )
    print(table(found))
    print(f"\n{seen} of {sites} sites ({share:.2%}); {sum(len(row['extra']) for row in found.values())} extra")
    for name, row in found.items():
        for kind in ("missing", "extra"):
            for place in (*row[kind], *row.get("copies", {}).get(kind, ())):
                print(f"{name}: {kind} {place}")
    for row in planted:
        print(f"{row['found']} of {row['sites']} planted copies, {len(row['extra'])} extra")
    return int(len(found) < len(by_name) or share < ENOUGH or any(row["missing"] or row["extra"] for row in planted))


if __name__ == "__main__":
    sys.exit(main())
