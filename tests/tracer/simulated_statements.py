"""Runs the statements that a GPU was asked about under the simulation; prints what waited, as JSON.

A program of its own, because the simulation lasts as long as the process.
"""

from __future__ import annotations

import copy
import io
import json
import math
import pickle
import sys
import tomllib
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import numpy
import torch
import torch.distributed
from probe_snippets import ENVIRONMENT

from perflint.tracer import simulation, syncs

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "perflint" / "semantics" / "facts" / "torch_api" / "measured.toml"
LEFT_OUT = ("Distributed", "Deterministic", "Explicit")
"""Groups that need a mode or processes, or that the debug mode does not report as the tracer does."""


def prepared(before: str) -> dict[str, Any]:
    """The names that a statement uses."""
    names: dict[str, Any] = {
        "torch": torch, "nn": torch.nn, "F": torch.nn.functional, "numpy": numpy, "math": math,
        "copy": copy, "pickle": pickle, "io": io, "kind": "cuda",
    }  # fmt: skip
    exec(ENVIRONMENT.replace("1024, 1024", "64, 64"), names)
    exec(before, names)
    return names


def main() -> None:
    """Run each, with tensors of its own."""
    warnings.simplefilter("ignore")
    heard: list[str] = []
    syncs.listen(lambda kind, _: heard.append(kind))
    simulation.start(lambda part, message: None)
    rows = []
    for row in tomllib.loads(MEASURED.read_text("utf-8"))["statements"]:
        if row["group"] in LEFT_OUT:
            continue
        before = row.get("before", "")
        names = prepared(before)
        heard.clear()
        exec(row["code"], names)
        rows.append({"code": row["code"], "before": before, "gpu": row["syncs"], "simulated": len(heard)})
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
