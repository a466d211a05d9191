"""Recordings: the traces of many runs of one package in one document.

The keys `syncs` and `lines` are those of `../sync_truth.json.gz`, so that `../score.py` reads a recording, too.
Columns count characters from 0. The others are

`runs`
    one for each test file: its name, the outcomes of its tests, the steps, how the process ended
`counts`
    for each run, by file: `[line, in how many counted steps it ran]`; -1 for a line that ran outside of steps only
`observations`, `pageable`, `modules`, `breaks`, `recompiles`
    the records of the traces, each with `seen`: by run, the fields that differ between runs

Only places in files of the package are kept, and observations without a place. `traces` turns a recording back into
traces, with which `perflint check --trace` gives its verdicts.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from perflint.tracer.events import (
    CandidateLine,
    GraphBreak,
    Header,
    Hits,
    ModuleCall,
    Observation,
    PageableCopy,
    Place,
    Recompile,
    Record,
    Sync,
    TensorFacts,
)
from perflint.tracer.places import source_file
from perflint.tracer.trace import Trace

Document = dict[str, Any]

KINDS: Mapping[str, tuple[type, tuple[str, ...]]] = {
    "syncs": (Sync, ("hits",)),
    "pageable": (PageableCopy, ("hits", "bytes")),
    "observations": (Observation, ("hits", "bytes", "ms", "detail", "total_bytes")),
    "modules": (ModuleCall, ("count", "steps")),
    "breaks": (GraphBreak, ("count",)),
    "recompiles": (Recompile, ("count",)),
}
"""By key, the kind of record, and the fields that differ between runs."""
_TESTS = frozenset({"test", "tests", "_tests", "testing"})
NOT_ASKED_FOR = {"module-move": "module move", "compile": "the compiler"}
"""Origins of waits that no finding is asked for."""


@dataclass(frozen=True, slots=True)
class Run:
    """One test file: the outcomes of its tests, and its trace unless the process was ended before it wrote one."""

    file: str
    outcomes: Mapping[str, int]
    trace: Trace | None
    ended: str = ""


def merged(package: str, version: str, root: str, runs: Iterable[Run]) -> Document:
    """The recording of the runs of a package. `root` is the prefix of its files in the traces, such as `src/`."""
    runs = list(runs)
    rows: dict[str, dict[str, Document]] = {key: {} for key in KINDS}
    lines: dict[str, set[int]] = {}
    counts: list[dict[str, list[list[int]]]] = []
    versions = {package: version}
    torch = ""
    for number, run in enumerate(runs):
        counts.append({})
        if run.trace is None:
            continue
        torch = run.trace.header.torch or torch
        for key, (kind, differing) in KINDS.items():
            for record in run.trace.of(kind):
                if (document := _document(record, package, root)) is not None:
                    seen = {name: document.pop(name) for name in differing}
                    row = rows[key].setdefault(json.dumps(document, sort_keys=True), {**document, "seen": {}})
                    if "hits" in seen and (before := row["seen"].get(str(number))):
                        # Two records that only their stacks distinguish.
                        seen["hits"] = [sum(both) for both in zip(before["hits"], seen["hits"], strict=True)]
                    row["seen"][str(number)] = seen
        for line in run.trace.of(CandidateLine):
            if (name := _name(line.file, package, root)) is not None:
                lines.setdefault(name, set()).add(line.line)
                counts[-1].setdefault(name, []).append([line.line, line.steps if line.in_steps else -1])
    return {
        "torch": torch,
        "gpu": "simulated",
        "versions": versions,
        "runs": [_run(run) for run in runs],
        "lines": {"cuda": {name: sorted(ran) for name, ran in sorted(lines.items())}},
        "counts": counts,
        **{key: [_finished(key, row) for row in found.values()] for key, found in rows.items()},
    }


def _run(run: Run) -> Document:
    document: Document = {"file": run.file, "outcomes": dict(run.outcomes), "ended": run.ended}
    if run.trace is not None:
        header = run.trace.header
        document["ended"] = header.ended
        for name in ("step_source", "steps", "line_steps", "call_steps", "lines_recorded", "torch", "devices"):
            document[name] = getattr(header, name)
    return document


def _document(record: Any, package: str, root: str) -> Document | None:
    """The fields of a record with names below the root; None if it is not about the package."""
    document = asdict(record)
    for name in ("place", "made"):
        if document.get(name) is not None:
            file = _name(document[name]["file"], package, root)
            if file is None:
                return None
            document[name]["file"] = file
        elif name in document and not isinstance(record, Observation):
            return None
    if "file" in document:
        document["file"] = _name(document["file"], package, root)
        if document["file"] is None:
            return None
    if "stack" in document:
        document["stack"] = ()
    if "hits" in document:
        document["hits"] = [document["hits"]["steps"], document["hits"]["outside"]]
    if "inner" in document:
        document["inner"] = _name(document["inner"], package, root) or document["inner"]
    return document


def _name(file: str, package: str, root: str) -> str | None:
    """The name below the root of a file of the package; None for other files and for tests."""
    inside = file.removeprefix(root) if file.startswith(root) else ""
    is_own = inside == f"{package}.py" or inside.startswith(f"{package}/")
    return inside if is_own and not is_test(inside) else None


def is_test(file: str) -> bool:
    """True if a file is a test, or in a folder of tests: some packages have them inside."""
    *folders, name = file.split("/")
    return bool(_TESTS.intersection(folders)) or name.startswith(("test_", "conftest.")) or name.endswith("_test.py")


def _finished(key: str, row: Document) -> Document:
    """A row; that of a wait in the form of the recordings of a GPU."""
    if key != "syncs":
        return row
    place = row.pop("place")
    count = sum(sum(seen["hits"]) for seen in row["seen"].values())
    excluded = NOT_ASKED_FOR.get(row["origin"]) or ("explicit" if row["kind"] == "explicit" else "")
    row |= {
        "file": place["file"],
        "line": place["line"],
        "end_line": place["end_line"],
        "col": place["column"] - 1,
        "end_col": place["end_column"] - 1,
        "func": place["function"],
        "text": place["text"],
        "count": count,
        "phases": {"cuda": count},
    }
    return row | ({"excluded": excluded} if excluded else {})


def traces(recording: Document, source: Path) -> Iterator[Trace]:
    """The traces of the runs, as far as they are about the package, whose files are below `source`."""
    files = {name: source_file(name, _lines(source / name)) for name in recording["lines"]["cuda"]}
    for number, (run, counts) in enumerate(zip(recording["runs"], recording["counts"], strict=True)):
        if "steps" not in run:
            continue
        ran = [
            CandidateLine(name, line, in_steps=steps >= 0, outside=steps < 0, steps=max(steps, 0))
            for name, counted in counts.items()
            for line, steps in counted
        ]
        seen = [
            record for key in KINDS for row in recording[key] if (record := _record(key, row, str(number))) is not None
        ]
        yield Trace(_header(run, source), (*ran, *seen, *files.values()))


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _header(run: Document, root: Path) -> Header:
    return Header(
        perflint="",
        python="",
        torch=run["torch"],
        devices=tuple(run["devices"]),
        program=(run["file"],),
        root=str(root.resolve()),
        started="",
        step_source=run["step_source"],
        warmup=0,
        steps=run["steps"],
        steps_per_window=1,
        ended=run["ended"],
        lines_recorded=run["lines_recorded"],
        simulated=True,
        line_steps=run["line_steps"],
        call_steps=run["call_steps"],
    )


def _record(key: str, row: Document, run: str) -> Record | None:
    """The record of a row in one run; None if it was not seen there."""
    if run not in row["seen"]:
        return None
    kind, _ = KINDS[key]
    values = {**row, **row["seen"][run]}
    if key == "syncs":
        values["place"] = Place(
            row["file"], row["line"], row["col"] + 1, row["end_line"], row["end_col"] + 1, row["func"], row["text"]
        )
    for name in ("place", "made"):
        if isinstance(values.get(name), dict):
            values[name] = Place(**values[name])
    for name in ("inputs", "outputs"):
        if name in values:
            values[name] = tuple(replace(TensorFacts(**each), shape=tuple(each["shape"])) for each in values[name])
    if "hits" in values:
        values["hits"] = Hits(*values["hits"])
    if "stack" in values:
        values["stack"] = ()
    # A recording has no fields that were added to the record later.
    record: Record = kind(**{each.name: values[each.name] for each in fields(kind) if each.name in values})
    return record


def write(path: Path, recording: Document) -> None:
    """Write a recording, the same bytes for the same contents."""
    text = json.dumps(recording, separators=(",", ":"), sort_keys=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read(path: Path) -> Document:
    """Read a recording."""
    recording: Document = json.loads(gzip.decompress(path.read_bytes()))
    return recording
