"""Runs small programs under the tracer, and reads the observations and the verdicts."""

from __future__ import annotations

import json
from pathlib import Path

from perflint.findings import Ruling
from perflint.tracer.events import Failure, Observation
from perflint.tracer.file import read_trace
from perflint.tracer.trace import Trace
from tests.tracer.device import python

OUTPUT = "perflint-trace.jsonl.gz"
HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


def traced(folder: Path, program: str, *options: str, simulate: bool = True) -> Trace:
    """The trace of all steps of a program, which must succeed and must not make the tracer fail."""
    (folder / "program.py").write_text(HEAD + program)
    how = ("--simulate",) if simulate else ()
    done = python(folder, "-m", "perflint", "trace", *how, "--warmup", "0", "--steps", "0", *options, "program.py")
    assert done.code == 0, done.err
    trace = read_trace(folder / OUTPUT)
    assert not trace.of(Failure)
    return trace


def observed(trace: Trace, text: str = "") -> dict[str, int]:
    """The facts that were observed on the lines with a text, with the number of their hits."""
    found: dict[str, int] = {}
    for seen in trace.of(Observation):
        if text in (seen.place.text if seen.place else ""):
            found[seen.fact] = found.get(seen.fact, 0) + seen.hits.steps + seen.hits.outside
    return found


def verdicts(folder: Path, code: str) -> dict[str, Ruling | None]:
    """The rulings on the findings of a rule in the program that was traced last, by the text of their lines."""
    options = ("--profile", "audit", "--select", code, "--trace", OUTPUT, "--output-format", "json")
    done = python(folder, "-m", "perflint", "check", "program.py", *options)
    assert done.code in (0, 1), done.err
    lines = (folder / "program.py").read_text().splitlines()
    return {
        lines[finding["line"] - 1].strip(): Ruling(finding["verdict"]["ruling"]) if finding["verdict"] else None
        for finding in json.loads(done.out)["findings"]
    }
