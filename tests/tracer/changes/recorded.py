"""Traces of experiments in the true format, for programs that were not run on a GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from perflint.tracer.events import CandidateLine, Experiment, Failure, Header, ModuleCall, Place, Step, TensorFacts
from perflint.tracer.experiments.launches import IN_PLACE
from perflint.tracer.file import write_trace
from perflint.tracer.places import source_file
from perflint.tracer.trace import Trace

SHAPE = (4, 8)


def place(text: str, code: str, function: str = "<module>", nth: int = 0) -> Place:
    """The place of the `nth` call in a program whose text starts with `code`."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    found = [node for node in calls if (ast.get_source_segment(text, node) or "").startswith(code)]
    node = sorted(found, key=lambda each: (each.end_lineno, each.end_col_offset))[nth]
    lines = text.splitlines()
    return Place(
        "program.py",
        node.lineno,
        node.col_offset + 1,
        node.end_lineno or 0,
        (node.end_col_offset or 0) + 1,
        function,
        lines[node.lineno - 1].strip(),
    )


def experiment(name: str, at: Place | None, ratio: float = 2.0, **changed: Any) -> Experiment:
    """A change to the whole model that was `ratio` × as fast."""
    change = {
        "compile": "torch.compile",
        "compile-with-graphs": 'torch.compile(mode="reduce-overhead")',
        "tf32": "TF32 for float32",
        "channels-last": "channels_last",
        "autocast": "bfloat16 autocast",
        "graphed-callables": "torch.cuda.make_graphed_callables",
    }.get(name, name)
    note = IN_PLACE if name.startswith("compile") else ""
    made = Experiment(
        name, (), "model", at, "Net", change, (SHAPE,), "float32", "cuda:0",
        10.0, 10.0 / ratio, ratio, ratio * 0.98, ratio * 1.02, 9, 1.0, 0.0, note,
    )  # fmt: skip
    return replace(made, **changed)


def call(at: Place, *shape: int, kind: str = "__main__.Net") -> ModuleCall:
    """Calls of the root module with a tensor of a shape in training."""
    facts = TensorFacts(shape, "float32", "cuda:0", "contiguous")
    output = replace(facts, requires_grad=True)
    return ModuleCall("", kind, "", at, (facts,), (output,), True, True, False, "", 2, 2)


def record(
    folder: Path, text: str, *records: Experiment | ModuleCall | Failure | Step, steps: str = "optimizer"
) -> tuple[Path, Path]:
    """Write `program.py` and its trace, with the source of its steps; gives both."""
    program, trace = folder / "program.py", folder / "trace.jsonl.gz"
    program.write_text(text)
    header = Header(
        "", "", "2.11.0", ("NVIDIA H200",), ("program.py",), str(folder), "", steps, 0, 2, 1, "finished", True
    )
    lines = text.splitlines(keepends=True)
    timed = () if any(isinstance(each, Step) for each in records) else (Step(0, 2, 20.0),)
    everything = (source_file("program.py", lines), *timed, *_lines(lines), *records)
    write_trace(trace, Trace(header, everything))
    return program, trace


def _lines(lines: list[str]) -> Iterator[CandidateLine]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield CandidateLine("program.py", number, in_steps=True, outside=True)
