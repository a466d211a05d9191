"""Holds experiments against the effect of their changes in the real programs.

    python benchmarks/tracer/experiments.py [-o FILE] [--traces FOLDER] [--seconds N] [PROGRAM …]

Each program of `changes/` is traced with `perflint trace --experiments`, as it is. Then the changes
that it knows are made in its source, and both versions are run in one process, in blocks of steps
that take turns. What an experiment says that a step saves is compared with what it saved.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from perflint.tracer.events import Experiment, Failure
from perflint.tracer.file import read_trace
from perflint.tracer.trace import Trace

FOLDER = Path(__file__).resolve().with_name("changes")
sys.path.insert(0, str(FOLDER))
PROGRAMS = {
    "resnet50": ["autocast", "channels-last", "autocast-channels-last", "fused-optimizer"],
    "resnet50_amp": ["channels-last", "fused-optimizer"],
    "gpt": ["vocabulary-padding", "fused-optimizer"],
    "mlp": ["graphed-callables", "fused-optimizer"],
    "conv_bias": ["bias-before-norm", "channel-multiples"],
    "conv_eval": ["conv-bn-fusion", "channels-last"],
}
"""The changes that each can make."""


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description="hold experiments against the changes that they speak of")
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--output", "-o", type=Path, default=FOLDER.with_name("results") / "experiments.json")
    parser.add_argument("--traces", type=Path, help="a folder to keep the traces in")
    parser.add_argument("--seconds", type=int, default=60, help="for the experiments of a program")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.programs:
            path = (options.traces or Path(temporary)) / f"{name}.jsonl.gz"
            results[name] = measured(name, path, options.seconds)
            document = {"device": results[name]["device"], "torch": results[name]["torch"], "programs": results}
            options.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def measured(name: str, path: Path, seconds: int) -> dict[str, Any]:
    """What the experiments of a program say, and what its changes do."""
    options = ["--experiments", "--experiment-time", str(seconds), "-o", str(path)]
    program = os.path.relpath(FOLDER / f"{name}.py")
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "perflint", "trace", *options, program], check=True)
    took = time.perf_counter() - began
    trace = read_trace(path)
    compared = {}
    for change in PROGRAMS[name]:
        compared[change] = held_against(name, change) | predicted(trace, change)
        print(name, change, compared[change], flush=True)
    return {
        "device": ", ".join(trace.header.devices),
        "torch": trace.header.torch,
        "traced_seconds": round(took, 1),
        "step_ms": trace.step_ms,
        "experiments": [asdict(each) | {"place": None} for each in trace.of(Experiment)],
        "failures": [failure.message for failure in trace.of(Failure)],
        "compared": compared,
    }


def held_against(name: str, change: str) -> dict[str, object]:
    """A program against itself with a change in its source."""
    common, program = import_module("_common"), import_module(name)
    result: dict[str, object] = common.compared(program.build, change)
    gc.collect()
    common.torch.cuda.empty_cache()
    return result


def predicted(trace: Trace, change: str) -> dict[str, float | None]:
    """What the experiments of a kind say of the whole step: those of layers together."""
    found = [each for each in trace.of(Experiment) if each.name == change]
    whole = [each for each in found if each.scope != "layer"] or found
    saved = sum(each.saved_ms for each in whole)
    step = trace.step_ms or 0.0
    ratio = round(step / (step - saved), 4) if saved < step else None
    return {"experiment_saved_ms": round(saved, 4), "experiment_step_ratio": ratio}


if __name__ == "__main__":
    main()
