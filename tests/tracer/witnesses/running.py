"""Runs small programs under the tracer, and reads the observations and the verdicts."""

from __future__ import annotations

import io
import json
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

from perflint.cli.main import main
from perflint.findings import Ruling
from perflint.tracer.events import Failure, Observation
from perflint.tracer.file import read_trace
from perflint.tracer.trace import Trace
from tests.tracer import warm

OUTPUT = "perflint-trace.jsonl.gz"
HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


def traced(folder: Path, program: str, *options: str, simulate: bool = True) -> Trace:
    """The trace of all steps of a program, which must succeed and must not make the tracer fail."""
    (folder / "program.py").write_text(HEAD + program)
    how = ("--simulate",) if simulate else ()
    done = warm.trace(folder, *how, "--warmup", "0", "--steps", "0", *options, "program.py")
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


def checked(folder: Path, codes: str, profile: str) -> list[dict[str, Any]]:
    """The findings of rules in the program that was traced last, as JSON."""
    options = ("--profile", profile, "--select", codes, "--trace", OUTPUT, "--output-format", "json")
    with chdir(folder), redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as out:
        status = main(["check", "program.py", *options])
        out.flush()
        written = out.buffer.getvalue()  # type: ignore[attr-defined]
    assert status in (0, 1)
    return json.loads(written)["findings"]


def verdicts(folder: Path, codes: str) -> dict[str, Ruling | None]:
    """The rulings on the findings of rules in the program that was traced last, by the text of their lines."""
    lines = (folder / "program.py").read_text().splitlines()
    return {
        lines[finding["line"] - 1].strip(): Ruling(finding["verdict"]["ruling"]) if finding["verdict"] else None
        for finding in checked(folder, codes, "audit")
    }
