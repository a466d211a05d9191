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
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
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

KINDS: Mapping[str, type] = {
    "syncs": Sync,
    "pageable": PageableCopy,
    "observations": Observation,
    "modules": ModuleCall,
    "breaks": GraphBreak,
    "recompiles": Recompile,
}
"""By key, the kind of record."""
_TESTS = frozenset({"test", "tests", "_tests", "testing"})


def is_test(file: str) -> bool:
    """True if a file is a test, or in a folder of tests: some packages have them inside."""
    *folders, name = file.split("/")
    return bool(_TESTS.intersection(folders)) or name.startswith(("test_", "conftest.")) or name.endswith("_test.py")


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
    kind = KINDS[key]
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


def read(path: Path) -> Document:
    """Read a recording."""
    recording: Document = json.loads(gzip.decompress(path.read_bytes()))
    return recording
