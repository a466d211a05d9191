"""Asks a GPU which operations synchronise.

    python tools/probe_syncs.py run --output FILE [--seconds N] [--processes N]
    python tools/probe_syncs.py table FILE          # writes perflint/semantics/facts/torch_api/measured.toml

`run` needs a CUDA device, and gives two things as JSON:

operators
    torch's own samples of each of its operators (`torch.testing._internal`, the OpInfo database),
    in float32, int64 and bool, under the sync debug mode: how often forward, in-place variant
    and backward synchronised, and which argument tells the samples that do from those that do not.
snippets
    The statements of `probe_snippets.py`: how many syncs the mode reports, and whether the host
    really waits for work that was queued before (`waits`), which also shows what the mode misses.

Every operator has a time limit; what failed or was left out is in the output with its reason.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import importlib.util
import io
import json
import math
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import tomllib
import types
import unittest
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy
import torch
import torch.distributed
import torch.utils._pytree
from probe_snippets import DETERMINISTIC, DISTRIBUTED, ENVIRONMENT, SNIPPETS, Snippet, parse

MESSAGE = "called a synchronizing CUDA operation"
TARGET = Path(__file__).parent.parent / "perflint" / "semantics" / "facts" / "torch_api" / "measured.toml"
KIND = "cuda" if torch.cuda.is_available() else "cpu"
DTYPES = (torch.float32, torch.int64, torch.bool)
SAMPLES = 16
OPERATOR_SECONDS = 8.0
QUEUED_MS = 25.0
CYCLES = 0


class OutOfTime(BaseException):
    """An operator ran past its limit. No `except Exception` of torch may stop it."""


def syncs_of(call: Callable[[], Any]) -> tuple[int, Any]:
    """How many synchronisations the mode reports while `call` runs, and what it gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if KIND == "cuda":
            torch.cuda.set_sync_debug_mode("warn")
        try:
            result = call()
        finally:
            if KIND == "cuda":
                torch.cuda.set_sync_debug_mode("default")
    return sum(MESSAGE in str(warning.message) for warning in caught), result


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTime in the body after some seconds."""

    def ring(*_: object) -> None:
        raise OutOfTime(f"stopped after {seconds:g} s")

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


# Operators


def operators(part: int, parts: int, deadline: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Probe every `parts`-th operator of torch's database, starting at `part`."""
    # torch's test helpers import a package that only its own tests need.
    if importlib.util.find_spec("expecttest") is None:
        sys.modules["expecttest"] = types.ModuleType("expecttest")
        sys.modules["expecttest"].TestCase = unittest.TestCase  # type: ignore[attr-defined]
    from torch.testing._internal.common_methods_invocations import op_db

    for info in op_db[part::parts]:
        name = f"{info.name}/{info.variant_test_name}" if info.variant_test_name else info.name
        if time.monotonic() > deadline:
            yield name, {"failed": ["left out: no time"]}
        else:
            yield name, operator(info)


def operator(info: Any) -> dict[str, Any]:
    """What one operator's samples did."""
    names = python_names(info)
    runs: dict[str, list[tuple[int, frozenset[str]]]] = defaultdict(list)
    failed: list[str] = []
    try:
        with limit(OPERATOR_SECONDS):
            for dtype in DTYPES:
                if dtype in info.supported_dtypes(KIND):
                    probe(info, dtype, runs, failed)
    except OutOfTime as error:
        failed.append(str(error))
    except Exception as error:  # a sample generator may raise anything; the output says what
        failed.append(described(error))
    result: dict[str, Any] = {"names": names}
    for way, samples in runs.items():
        result[way] = summary(samples)
    if failed:
        result["failed"] = sorted(set(failed))[:5]
    return result


def probe(info: Any, dtype: torch.dtype, runs: dict[str, Any], failed: list[str]) -> None:
    """Run the samples of one dtype: forward, in place and backward."""
    differentiable = dtype.is_floating_point and info.supports_autograd
    samples = info.sample_inputs(KIND, dtype, requires_grad=differentiable)
    for number, sample in enumerate(islice(samples, SAMPLES)):
        features = features_of(sample, dtype)
        stage = ""
        try:
            if not number:
                info.op(sample.input, *sample.args, **sample.kwargs)  # libraries initialise themselves
            count, result = syncs_of(lambda: info.op(sample.input, *sample.args, **sample.kwargs))  # noqa: B023
            runs["forward"].append((count, features))
            stage = "backward: "
            if differentiable and (backward := backward_of(result, sample)):
                runs["backward"].append((syncs_of(backward)[0], features))
            stage = "in place: "
            if info.inplace_variant and isinstance(sample.input, torch.Tensor):
                with torch.no_grad():
                    target = sample.input.clone()
                    call = lambda: info.inplace_variant(target, *sample.args, **sample.kwargs)  # noqa: B023, E731
                    runs["inplace"].append((syncs_of(call)[0], features))
        except Exception as error:  # one bad sample must not hide the others
            failed.append(stage + described(error))


def backward_of(result: Any, sample: Any) -> Callable[[], Any] | None:
    """A call that differentiates a result with respect to a sample's inputs."""
    leaves = torch.utils._pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    inputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    outputs = [
        leaf
        for leaf in torch.utils._pytree.tree_leaves(result)
        if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None and leaf.layout == torch.strided
    ]
    if not inputs or not outputs:
        return None
    ones = [torch.ones_like(output) for output in outputs]
    return lambda: torch.autograd.grad(outputs, inputs, ones, allow_unused=True)


def features_of(sample: Any, dtype: torch.dtype) -> frozenset[str]:
    """What may tell one sample from another: types of arguments and values of options."""
    found = {f"input is {str(dtype).removeprefix('torch.')}"}
    named = {str(number): value for number, value in enumerate(sample.args, 1)} | sample.kwargs
    found |= {f"{name} given" for name in named}
    for name, value in named.items():
        for leaf in torch.utils._pytree.tree_leaves(value):
            found.add(f"{name} has {kind_of(leaf)}")
        if value is None or isinstance(value, bool | int | float | str):
            found.add(f"{name}={value!r}")
    if isinstance(sample.input, torch.Tensor):
        found |= {
            f"input is {sample.input.dim()}-d",
            "input is empty" if not sample.input.numel() else "input has elements",
        }
    return frozenset(found)


def kind_of(leaf: Any) -> str:
    if not isinstance(leaf, torch.Tensor):
        return type(leaf).__name__
    rank = "0-d " if not leaf.dim() else ""
    return f"{rank}{str(leaf.dtype).removeprefix('torch.')} on {leaf.device.type}"


def summary(samples: list[tuple[int, frozenset[str]]]) -> dict[str, Any]:
    """Counts, and the features that split the samples exactly into syncing and not."""
    syncing = [features for count, features in samples if count]
    clean = [features for count, features in samples if not count]
    result: dict[str, Any] = {"samples": len(samples), "synchronised": len(syncing)}
    if syncing:
        result["most"] = max(count for count, _ in samples)
    if syncing and clean:
        always, never = frozenset.intersection(*syncing), frozenset.intersection(*clean)
        if when := sorted(always - frozenset().union(*clean)):
            result["when"] = when
        if unless := sorted(never - frozenset().union(*syncing)):
            result["unless"] = unless
        result["examples"] = {"synchronised": sorted(syncing[0]), "clean": sorted(clean[0])}
    return result


def python_names(info: Any) -> list[str]:
    """The public full names that an operator has in Python."""
    holder: Any = torch
    for word in info.name.split("."):
        holder = getattr(holder, word, None)
    names = [f"torch.{info.name.removeprefix('torch.')}"] if holder is not None else []
    if "." not in info.name and hasattr(torch.Tensor, info.name):
        names.append(f"torch.Tensor.{info.name}")
    if info.name.startswith("linalg."):
        names += [f"torch.Tensor.{info.name[7:]}"] if hasattr(torch.Tensor, info.name[7:]) else []
    return names


def described(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}"


# Snippets


def snippets(deadline: float) -> list[dict[str, Any]]:
    """Probe every snippet: reported by the mode, and really waiting."""
    rows = [probed(snippet, deadline) for snippet in parse(SNIPPETS)]
    torch.use_deterministic_algorithms(True)
    rows += [probed(snippet, deadline) for snippet in parse(DETERMINISTIC, "Deterministic")]
    torch.use_deterministic_algorithms(False)
    try:
        with limit(30):
            join_group()
            rows += [probed(snippet, deadline) for snippet in parse(DISTRIBUTED, "Distributed")]
    except (OutOfTime, RuntimeError, ValueError) as error:
        rows.append({"statement": "torch.distributed.init_process_group", "failed": described(error)})
    return rows


def join_group() -> None:
    store = torch.distributed.HashStore()
    backend = "nccl" if KIND == "cuda" else "gloo"
    torch.distributed.init_process_group(backend, store=store, rank=0, world_size=1)


def probed(snippet: Snippet, deadline: float) -> dict[str, Any]:
    row: dict[str, Any] = {"group": snippet.group, "statement": snippet.statement, "belief": snippet.belief}
    if snippet.before:
        row["before"] = snippet.before
    if time.monotonic() > deadline:
        return row | {"failed": "left out: no time"}
    code = compile(snippet.statement, "<snippet>", "exec")
    try:
        with limit(OPERATOR_SECONDS):
            first = prepared(snippet)
            exec(code, first)
            names = prepared(snippet)
            row["syncs"] = syncs_of(lambda: exec(code, names))[0]
            row |= waiting(code, snippet)
    except (Exception, OutOfTime) as error:  # a snippet may not exist in this torch; the output says so
        row["failed"] = described(error)
    return row


def prepared(snippet: Snippet) -> dict[str, Any]:
    """The names that a snippet uses, made anew."""
    names: dict[str, Any] = {
        "torch": torch, "nn": torch.nn, "F": torch.nn.functional, "dist": torch.distributed, "numpy": numpy,
        "math": math, "copy": copy, "pickle": pickle, "io": io, "kind": KIND,
    }  # fmt: skip
    exec(ENVIRONMENT, names)
    exec(snippet.before, names)
    return names


def waiting(code: types.CodeType, snippet: Snippet) -> dict[str, Any]:
    """True if the host waits for a long kernel that was queued before the statement."""
    if KIND != "cuda":
        return {}
    times = []
    for _ in range(2):
        names = prepared(snippet)
        torch.cuda.synchronize()
        torch.cuda._sleep(CYCLES)
        start = time.perf_counter()
        exec(code, names)
        times.append((time.perf_counter() - start) * 1000)
        torch.cuda.synchronize()
    return {"host_ms": round(min(times), 3), "waits": min(times) > QUEUED_MS / 2}


def cycles() -> int:
    """How many cycles keep this GPU busy for QUEUED_MS."""
    if KIND != "cuda":
        return 0
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(1_000_000)
    start.record()
    torch.cuda._sleep(10_000_000)
    end.record()
    torch.cuda.synchronize()
    return int(10_000_000 * QUEUED_MS / start.elapsed_time(end))


# Commands


def run(output: Path, seconds: float, processes: int) -> None:
    """Probe snippets here, operators in processes beside, and write all as one document."""
    global CYCLES
    CYCLES = cycles()
    deadline = time.monotonic() + seconds
    document: dict[str, Any] = {
        "torch": torch.__version__,
        "gpu": torch.cuda.get_device_name() if KIND == "cuda" else "",
        "date": datetime.date.today().isoformat(),
        "snippets": snippets(time.monotonic() + seconds / 3),
    }
    print(f"{len(document['snippets'])} snippets, {seconds - (deadline - time.monotonic()):.0f} s", flush=True)
    with tempfile.TemporaryDirectory(prefix="probe-syncs-") as folder:
        parts = [Path(folder) / f"{part}.json" for part in range(processes)]
        left = deadline - time.monotonic()
        command = [sys.executable, __file__, "part", "--seconds", str(left - 15)]
        children = [
            subprocess.Popen([*command, "--output", str(path), "--part", f"{part}/{processes}"])
            for part, path in enumerate(parts)
        ]
        for child in children:
            try:
                child.wait(max(1.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        rows = [json.loads(line) for path in parts if path.exists() for line in path.read_text().splitlines()]
        statuses = [child.returncode for child in children]
    document["operators"] = dict(sorted(rows))
    document["exit_statuses"] = statuses
    output.write_text(json.dumps(document, indent=1))
    report(document)


def report(document: dict[str, Any]) -> None:
    """A few lines about a run."""
    found = document["operators"]
    wrong = [row for row in document["snippets"] if "waits" in row and disagrees(row)]
    failed = [row for row in document["snippets"] if "failed" in row]
    syncing = [name for name, facts in found.items() if facts.get("forward", {}).get("synchronised")]
    ran = sum("forward" in facts for facts in found.values())
    print(f"{len(found)} operators, {len(syncing)} synchronise, {len(found) - ran} did not run")
    print("exit statuses of the processes:", *document["exit_statuses"])
    print(f"{len(failed)} snippets failed:", *(f"\n  {row['statement']}: {row['failed']}" for row in failed))
    print("snippets that do other than believed, or where report and wait differ:")
    for row in wrong:
        print(f"  {row['belief']:3} {row['syncs']} syncs, waits {row['waits']}: {row['statement']}")


def disagrees(row: dict[str, Any]) -> bool:
    believed = {"yes": True, "no": False}.get(row["belief"], row["waits"])
    return believed != row["waits"] or bool(row["syncs"]) != row["waits"]


def table(document: dict[str, Any]) -> str:
    """The TOML table of what was measured."""
    lines = [
        "# Which operations synchronise, as a GPU did them.",
        "# Generated by tools/probe_syncs.py; do not edit.",
        "",
        f'torch = "{document["torch"].split("+")[0]}"',
        f'gpu = "{document["gpu"]}"',
        f'date = "{document["date"]}"',
        "",
        "# Syncs that the debug mode reports, and whether the host waits for work that was queued.",
        "statements = [",
        *(statement(row) for row in document["snippets"] if "waits" in row),
        "]",
    ]
    conditions: dict[str, list[str]] = {}
    for way in ("forward", "inplace", "backward"):
        merged = merged_by_name(document["operators"], way)
        lines += ["", f"[{way}]"]
        for verdict in ("always", "sometimes", "never"):
            names = [name for name, facts in merged.items() if verdict_of(facts) == verdict]
            lines.append(f"{verdict} = {words(names)}")
        for name, facts in merged.items():
            for key in ("when", "unless"):
                if facts.get(key):
                    conditions.setdefault(f"{way}.{key}", []).append(f"{quoted(name)} = {quoted(facts[key])}")
    for title, rows in conditions.items():
        lines += ["", f"[{title}]", *sorted(rows)]
    return "\n".join(lines) + "\n"


def merged_by_name(found: dict[str, Any], way: str) -> dict[str, dict[str, Any]]:
    """The samples of all variants of each name; conditions only where they hold for every variant."""
    merged: dict[str, dict[str, Any]] = {}
    for facts in found.values():
        if way not in facts:
            continue
        here = facts[way]
        names = facts["names"]
        if way == "inplace":
            names = [f"{name}_" for name in names if name.startswith("torch.Tensor.")]
        for name in names:
            if (known := merged.get(name)) is None:
                merged[name] = {key: here.get(key, []) for key in ("samples", "synchronised", "when", "unless")}
                continue
            for key in ("when", "unless"):
                known[key] = sorted(set(known[key]) & set(here.get(key, [])))
            known["samples"] += here["samples"]
            known["synchronised"] += here["synchronised"]
    return dict(sorted(merged.items()))


def verdict_of(facts: dict[str, Any]) -> str:
    if not facts["synchronised"]:
        return "never"
    return "always" if facts["synchronised"] == facts["samples"] else "sometimes"


def statement(row: dict[str, Any]) -> str:
    words_ = {"code": row["statement"], "before": row.get("before"), "group": row["group"]}
    pairs = [f"{key} = {quoted(value)}" for key, value in words_.items() if value]
    return f"    {{ {', '.join(pairs)}, syncs = {row['syncs']}, waits = {str(row['waits']).lower()} }},"


def quoted(value: str | list[str]) -> str:
    """A TOML string, or an array of them; JSON's notation is TOML's for these."""
    return json.dumps(value, ensure_ascii=False)


def words(names: Iterable[str], width: int = 118) -> str:
    """Names as a TOML literal string of lines."""
    return "\n".join(["'''", *textwrap.wrap(" ".join(names), width, break_on_hyphens=False), "'''"])


def main() -> int:
    """Read the command line, probe or write the table."""
    parser = argparse.ArgumentParser(description="ask a GPU which operations synchronise")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("run", "part"):
        options = verbs.add_parser(verb)
        options.add_argument("--output", type=Path, required=True)
        options.add_argument("--seconds", type=float, default=280.0, help="limit for everything (default: 280)")
        options.add_argument("--processes", type=int, default=4, help="for the operators (default: 4)")
        options.add_argument("--part", default="0/1", metavar="I/N", help="every Nth operator from the Ith on")
    options = verbs.add_parser("table")
    options.add_argument("recording", type=Path)
    options.add_argument("--output", type=Path, default=TARGET)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.verb == "run":
        run(given.output, given.seconds, given.processes)
    elif given.verb == "part":
        part, parts = map(int, given.part.split("/"))
        # Line by line: what was found before a crash is kept.
        with given.output.open("w", buffering=1) as file:
            for row in operators(part, parts, time.monotonic() + given.seconds):
                file.write(json.dumps(row) + "\n")
    else:
        text = table(json.loads(given.recording.read_text()))
        tomllib.loads(text)  # what is written must be read again
        given.output.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
