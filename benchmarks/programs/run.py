"""Time public programs as they are, and with the fixes of perflint.

    python benchmarks/programs/run.py --checkouts DIR --json FILE [--seconds N] [--rounds N] [--small] [PROGRAM...]

The programs of `programs.toml` are copied from DIR, where `benchmarks/tracer/public/run.py --prepare` puts them, and
get random data (`data.py`). Each runs as it is; after `perflint fix --apply`; with `--unsafe-fixes`; with
`--risky-fixes`; after `perflint fix --trace FILE --experiments --risky-fixes`, for which `perflint trace --experiments`
records it first; and with the changes of `hand/NAME.toml`, which follow the help of the findings and the report of the
trace. If the program fails or is slower with the changes of experiments, they are left out one rule after the other,
as `perflint verify` does; the report names them.

All variants of a program run in turns. A run has the same seed, some steps of warm-up and then steps that are timed by
the probe of `perflint verify`, on the clock of the GPU. Programs are spread over the GPUs of the machine; nothing else
runs on a GPU while one is timed there. A program that fails does not stop the others. `--small` tries all of that on
the CPU. What is done is in FILE after each program, also if the time ends.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import queue
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.programs import data
from benchmarks.programs.by_hand import edited, hand

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PUBLIC = ROOT / "benchmarks" / "tracer" / "public"
DRIVER = "perflint_driver.py"
"""Name of our own file beside the program's; it is not fixed."""
STATIC = {"safe": (), "unsafe": ("--unsafe-fixes",), "risky": ("--risky-fixes",)}
"""The options of `perflint fix` for each variant that needs no trace."""
ORIGINAL, EXPERIMENTS, HAND = "original", "experiments", "hand"
ORDER = (ORIGINAL, *STATIC, EXPERIMENTS, HAND)
GRAPHS = "compile-with-graphs"
LEFT_OUT = ("", GRAPHS, "TPF991", "TPF991,TPF994", "TPF991,TPF993,TPF994", "TPF991,TPF992,TPF993,TPF994")
"""The rules on experiments that are left out one after the other if the program fails or is slower; first the mode of
torch.compile that uses CUDA graphs."""
SLOWER = 1.05
LEAST = 25.0
"""Seconds below which a program is not begun."""
SEED = 1
FIRST = 150.0


@dataclass(slots=True)
class Measured:
    """A program with its variants and what was measured of them."""

    name: str
    entry: dict[str, Any]
    work: Path
    small: bool
    wanted: tuple[str, ...] = ()
    """The variants to make; empty for all."""
    first: float = FIRST
    """Seconds that a first run may take: the compiler works then."""
    diffs: dict[str, str] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    """The end of the messages of each fix and trace."""
    runs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)
    """Variants that are the same text as an earlier one."""
    left_out: str = ""
    errors: list[str] = field(default_factory=list)

    def variant(self, name: str) -> Path:
        """The folder of a variant."""
        return self.work / name

    def inside(self, root: Path) -> Path:
        """The folder in which the program runs."""
        return root / self.entry.get("folder", ".")

    def command(self, variant: str) -> tuple[str, list[str]]:
        """The script and its arguments."""
        arguments = shlex.split(self.entry.get("small" if self.small else "arguments", self.entry.get("arguments", "")))
        if variant == HAND:
            switches = hand(self.name).get("arguments", {})
            arguments = [switches.get(each, each) for each in arguments]
        script = self.entry.get("script", DRIVER)
        return (DRIVER, [script, *arguments]) if "launch" in self.entry else (script, arguments)

    @property
    def distinct(self) -> list[str]:
        """The variants to run."""
        return [each for each in ORDER if self.variant(each).exists() and each not in self.same]


def copy(source: Path, into: Path) -> None:
    """Copy a program; its data are links."""

    def copied(one: str, other: str) -> str:
        return shutil.copy2(one, other) if one.endswith(".py") else str(os.link(one, other) or other)

    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(source, into, copy_function=copied)


def prepare(program: Measured, checkouts: Path) -> None:
    """Copy a program, write its data, and make the variants that need no trace."""
    root = program.variant(ORIGINAL)
    shutil.copytree(checkouts / program.name, root, symlinks=True)
    folder = program.inside(root)
    if "driver" in program.entry or "launch" in program.entry:
        ours = HERE / "drivers" / program.entry["driver"] if "driver" in program.entry else PUBLIC / "launch.py"
        shutil.copy(ours, folder / DRIVER)
    if "data" in program.entry:
        random.seed(0)
        getattr(data, program.entry["data"])(folder, program.small)
    for name, options in STATIC.items():
        if not program.wanted or name in program.wanted:
            fixed(program, name, options)
    if not program.wanted or HAND in program.wanted:
        changed_by_hand(program)


def changed_by_hand(program: Measured) -> None:
    """Make the variant by hand, if the program has one. Raises ValueError if a fragment is not there once."""
    known = hand(program.name)
    if not known:
        return
    root = program.variant(HAND)
    copy(program.variant(ORIGINAL), root)
    try:
        edited(program.inside(root), known)
    except ValueError:
        shutil.rmtree(root)
        raise
    program.diffs[HAND] = _diff(program.variant(ORIGINAL), root)


def fixed(program: Measured, name: str, options: Sequence[str]) -> None:
    """Make a variant by `perflint fix --apply`."""
    root = program.variant(name)
    copy(program.variant(ORIGINAL), root)
    folder = program.inside(root)
    files = program.entry.get("files") or [path.name for path in sorted(folder.glob("*")) if _is_code(path)]
    command = [sys.executable, "-m", "perflint", "fix", "--apply", "--exit-zero", "--no-cache", *options, *files]
    done = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True, timeout=300)
    program.told[name] = done.stderr[-3000:]
    if done.returncode:
        program.errors.append(f"fix {name}: {_last(done.stderr)}")
    program.diffs[name] = _diff(program.variant(ORIGINAL), root)
    program.same.pop(name, None)
    for other in ORDER[: ORDER.index(name)]:
        if program.diffs.get(other, "") == program.diffs[name] and program.variant(other).exists():
            program.same[name] = program.same.get(other, other)
            break


def _is_code(path: Path) -> bool:
    return path.name != DRIVER and (path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py"))))


def _diff(before: Path, after: Path) -> str:
    lines: list[str] = []
    for path in sorted(before.rglob("*.py")):
        name = str(path.relative_to(before))
        old, new = (each.read_text(errors="replace").splitlines() for each in (path, after / name))
        lines += difflib.unified_diff(old, new, name, name, lineterm="", n=1)
    return "\n".join(lines)


def _environment(device: str | None = None, cache: Path | None = None) -> dict[str, str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*_paths(), str(ROOT)])}
    if device is not None:
        # The server must not start CUDA before it forks.
        environment |= {"CUDA_VISIBLE_DEVICES": device, "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
    return environment if cache is None else environment | {"TORCHINDUCTOR_CACHE_DIR": str(cache)}


def _paths() -> list[str]:
    known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return [*known, str(PUBLIC / "site-packages")]


def _last(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[:300]


def record(program: Measured, device: str, trace: Path, seconds: int, limit: float) -> None:
    """Trace a program with experiments. Ends it once the trace is written."""
    root = program.work / "traced"
    copy(program.variant(ORIGINAL), root)
    script, arguments = program.command(ORIGINAL)
    options = ["--experiments", "--experiment-time", str(seconds), "--steps", "8", "--warmup", "8", "--window", "3"]
    command = [sys.executable, "-m", "perflint", "trace", *options, "-o", str(trace), script, *arguments]
    with open(program.work / "trace.txt", "w+") as told:
        process = subprocess.Popen(
            command,
            cwd=program.inside(root),
            env=_environment(device, program.work.parent / "inductor"),
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=told,
            start_new_session=True,
        )
        end = time.monotonic() + limit
        while process.poll() is None and time.monotonic() < end and not trace.exists():
            time.sleep(0.2)
        _kill(process)
        told.seek(0)
        text = told.read()
    program.told["trace"] = text[-3000:]
    if not trace.exists():
        program.errors.append(f"trace: {_last(text) if process.returncode != -signal.SIGKILL else 'out of time'}")


def _kill(process: subprocess.Popen[Any]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Server:
    """The process that runs programs on one GPU."""

    def __init__(self, device: str, cpus: Sequence[int], cache: Path, steps: int, warmup: int) -> None:
        environment = _environment(device, cache) | {"PROGRAMS_CPUS": ",".join(map(str, cpus))}
        self._steps, self._warmup = steps, warmup
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "server.py")],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._ask(None)

    def _ask(self, job: dict[str, Any] | None) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        if job is not None:
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the server of programs has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def run(self, program: Measured, variant: str, limit: float) -> dict[str, Any]:
        """One run of a variant, in a fresh copy that has the same path each time."""
        place, output = program.work / "run", program.work / "output"
        copy(program.variant(variant), place)
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir()
        script, arguments = program.command(variant)
        job = {
            "folder": str(program.inside(place)),
            "script": script,
            "arguments": arguments,
            "paths": _paths(),
            "environment": {},
            "output": str(output),
            "steps": self._steps,
            "warmup": self._warmup,
            "seed": SEED,
            "timeout": limit,
        }
        done = self._ask(job)
        return done | _seen(output, done["status"])

    def close(self) -> None:
        """End it and what it runs."""
        _kill(self._process)


def _seen(output: Path, status: int | None) -> dict[str, Any]:
    """The report of the probe; an error if the program made no steps or failed."""
    reports = [json.loads(path.read_text()) for path in output.glob("*.json")]
    best = max(reports, key=lambda one: (one["source"], len(one["times"])), default=None)
    if status is None:
        return {"error": "it took too long"}
    if best is None or not best["times"] or (status and not best["stopped"]):
        return {"error": _last((output / "stderr").read_text(errors="replace")) or f"exit {status}"}
    times = [round(ms, 4) for ms in best["times"]]
    return {
        "ms": median(times),
        "mean": fmean(times),
        "times": times,
        "losses": [loss for _, loss in best["losses"]],
        "clock": best["clock"],
        "device": best["device"],
    }


def measure(program: Measured, server: Server, trace: Path, rounds: int, share: float, deadline: float) -> None:
    """Run all variants in turns until the rounds are done or the time is up.

    The search for changes that hold ends at `share`, the rounds at `deadline`: fewer programs with all of their rounds
    say more than many with one.
    """
    runs = program.runs
    if deadline - time.monotonic() < LEAST:
        program.errors.append("no time was left")
        return

    def run(variant: str, limit: float = 60.0) -> dict[str, Any]:
        left = max(deadline - time.monotonic(), 5.0)
        return server.run(program, variant, min(limit, left))

    has_experiments = trace.exists() and (not program.wanted or EXPERIMENTS in program.wanted)
    first = run(ORIGINAL, program.first) if has_experiments else {}
    if "error" in first:
        program.errors.append(f"original: {first['error']}")
        runs[ORIGINAL] = [first]
        return
    for rules in LEFT_OUT if has_experiments else ():
        if time.monotonic() > share:
            # Changes that were not seen to hold are not measured.
            program.errors.append("with experiments: no time was left to try the rest")
            shutil.rmtree(program.variant(EXPERIMENTS), ignore_errors=True)
            program.same.pop(EXPERIMENTS, None)
            break
        known = trace if not rules else without_graphs(trace, program.work / "without-graphs.gz")
        options = ["--trace", str(known), "--experiments", "--risky-fixes"]
        if rules.startswith("TPF"):
            options += ["--ignore", rules]
        before = program.diffs.get(EXPERIMENTS)
        fixed(program, EXPERIMENTS, options)
        program.left_out = rules
        if EXPERIMENTS in program.same:
            break
        if program.diffs[EXPERIMENTS] == before:
            continue
        # The compiler works in the first run; what it made is used again by the others.
        tried = run(EXPERIMENTS, program.first)
        reason = tried.get("error") or _slower(tried, first)
        if not reason:
            break
        program.errors.append(f"with experiments{f' but {rules}' if rules else ''}: {reason}")
    took = 0.0
    for turn in range(rounds):
        began = time.monotonic()
        if began + took > deadline:
            break
        names = program.distinct
        for variant in names if turn % 2 == 0 else reversed(names):
            runs.setdefault(variant, []).append(run(variant))
        took = time.monotonic() - began


def without_graphs(trace: Path, into: Path) -> Path:
    """A copy of a trace without the experiments with CUDA graphs."""
    from perflint.tracer.events import Experiment
    from perflint.tracer.file import read_trace, write_trace

    whole = read_trace(trace)
    kept = [each for each in whole.records if not (isinstance(each, Experiment) and each.name == GRAPHS)]
    write_trace(into, replace(whole, records=tuple(kept)))
    return into


def _slower(run: dict[str, Any], first: dict[str, Any]) -> str:
    ratio = run["ms"] / first["ms"]
    return f"a step takes {ratio:.2f} times as long" if ratio > SLOWER else ""


def summary(program: Measured) -> dict[str, Any]:
    """The figures of a program."""
    result: dict[str, Any] = {
        "kind": program.entry["kind"],
        "commit": program.entry["commit"],
        "errors": program.errors,
        "left_out": program.left_out,
        "same": program.same,
        "told": program.told,
        "diffs": program.diffs,
        "variants": {},
    }
    good = {name: [run for run in runs if "error" not in run] for name, runs in program.runs.items()}
    base = good.get(ORIGINAL, [])
    for name, runs in good.items():
        failed = [run["error"] for run in program.runs[name] if "error" in run]
        figures: dict[str, Any] = {"runs": len(runs), "failed": failed}
        if runs and base:
            medians = [run["ms"] for run in runs]
            figures |= {
                "ms": median(medians),
                "least": min(medians),
                "most": max(medians),
                "mean": median(run["mean"] for run in runs),
                "gain": median(run["ms"] for run in base) / median(medians),
                "losses": loss_difference(base, runs),
                "clock": runs[0]["clock"],
                "device": runs[0]["device"],
            }
        figures["all"] = [{key: run.get(key) for key in ("status", "seconds", "times", "losses")} for run in runs]
        result["variants"][name] = figures
    return result


def loss_difference(base: Sequence[dict[str, Any]], runs: Sequence[dict[str, Any]]) -> float | None:
    """The mean difference of losses at equal places, as a share of the mean loss; None without losses.

    For runs of the original it is their difference among themselves: the noise.
    """
    pairs = [(one["losses"], other["losses"]) for one in base for other in runs if one is not other]
    shares = []
    for one, other in pairs:
        scale = fmean(map(abs, one)) if one else 0.0
        if scale and other:
            shares.append(fmean(abs(a - b) for a, b in zip(one, other, strict=False)) / scale)
    return median(shares) if shares else None


def table(results: dict[str, Any]) -> str:
    """The gains in Markdown, with the number of runs of each variant."""
    lines = [
        f"| program | kind | runs | as it is, ms | {' | '.join(ORDER[1:])} | losses differ | notes |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, result in results.items():
        variants = result["variants"]
        base = variants.get(ORIGINAL, {})
        counts = sorted({figures["runs"] for figures in variants.values() if figures["runs"]})
        cells = ["-".join(map(str, counts[:1] + counts[1:][-1:])) or "–"]
        cells.append(f"{base['ms']:.2f} ({base['least']:.2f}-{base['most']:.2f})" if "ms" in base else "–")
        for variant in ORDER[1:]:
            stands_for = result["same"].get(variant, variant)
            figures = variants.get(stands_for, {})
            if stands_for == ORIGINAL and "ms" in base:
                cells.append("no change")
            else:
                cells.append(_gain(figures))
        differ = [variants.get(result["same"].get(each, each), {}).get("losses") for each in (EXPERIMENTS, HAND)]
        shown = ", ".join("–" if each is None else f"{each:.1e}" for each in differ)
        cells.append(f"{shown} (noise {base.get('losses') or 0:.1e})")
        notes = [*result["errors"], *(f"{each}: {text}" for each in variants for text in variants[each]["failed"][:1])]
        lines.append(
            f"| {name} | {result['kind']} | {' | '.join(cells)} | {'; '.join(notes)[:300].replace('|', '/')} |"
        )
    return "\n".join(lines)


def _gain(figures: dict[str, Any]) -> str:
    if "gain" not in figures:
        return "fails" if figures.get("failed") else "–"
    return f"{figures['gain']:.2f} × ({figures['least']:.2f}-{figures['most']:.2f})"


def main() -> int:
    """Measure the programs that are named, or all."""
    options = _options()
    began = time.monotonic()
    deadline = began + options.seconds
    entries = tomllib.loads((HERE / "programs.toml").read_text())
    names = options.programs or list(entries)
    devices = [""] if options.small else _devices()
    with tempfile.TemporaryDirectory(prefix="programs-", dir=options.work) as folder:
        work = Path(folder)
        traces = options.traces.resolve() if options.traces else work / "traces"
        traces.mkdir(exist_ok=True)
        wanted = (ORIGINAL, *options.variants.split(",")) if options.variants else ()
        programs = [Measured(name, entries[name], work / name, options.small, wanted, options.first) for name in names]
        with ThreadPoolExecutor(min(len(programs), os.cpu_count() or 2)) as pool:
            list(pool.map(lambda each: _contained(each, prepare, options.checkouts.resolve()), programs))
        _tell(began, "prepared")
        known = not wanted or EXPERIMENTS in wanted
        traced = options.traced.split(",") if options.traced else names
        missing = [
            each for each in programs if known and each.name in traced and not (traces / f"{each.name}.gz").exists()
        ]
        share = (deadline - time.monotonic()) * (1.0 if options.record else 0.45)
        end = time.monotonic() + share
        with ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(_record_all, missing, devices, traces, options, end)]
            if not options.record:
                jobs.append(pool.submit(_warm_all, programs, devices, options, work))
            for job in jobs:
                job.result()
        _tell(began, "recorded, and ran the variants by hand once")
        if options.record:
            return 0
        results: dict[str, Any] = {}
        _measure_all(programs, devices, traces, options, deadline, work, results)
        ordered = {name: results[name] for name in names if name in results}
        print(table(ordered), flush=True)
    return 0


def _contained(program: Measured, do: Any, *arguments: Any) -> None:
    """A fault of one program is noted and does not stop the others."""
    try:
        do(program, *arguments)
    except Exception as error:
        program.errors.append(f"{do.__name__}: {type(error).__name__}: {str(error)[:200]}")


def _record_all(
    programs: Iterable[Measured], devices: Sequence[str], traces: Path, options: argparse.Namespace, end: float
) -> None:
    """Record a few programs at a time on each GPU: the compiler takes most of the time, on the CPU."""

    def one(device: str, program: Measured) -> None:
        left = end - time.monotonic()
        if left > 15:
            limit = min(left, options.experiment_time * 2 + 60)
            _contained(program, record, device, traces / f"{program.name}.gz", options.experiment_time, limit)
        else:
            program.errors.append("trace: no time was left")

    _spread(programs, devices * options.recorders, one)


def _warm_all(programs: Iterable[Measured], devices: Sequence[str], options: argparse.Namespace, work: Path) -> None:
    """Run the variants by hand once, a few at a time, so that the compiler's work is in its cache."""
    every = sorted(os.sched_getaffinity(0))

    def warm(program: Measured, device: str) -> None:
        server = Server(device, every, work / "inductor", options.steps, options.warmup)
        try:
            tried = server.run(program, HAND, program.first)
        finally:
            server.close()
        if "error" in tried:
            program.errors.append(f"by hand: {tried['error']}")
            program.variant(HAND).rename(program.work / "failed")

    by_hand = [each for each in programs if each.variant(HAND).exists()]
    _spread(by_hand, devices * options.recorders, lambda device, each: _contained(each, warm, device))


def _spread(programs: Iterable[Measured], devices: Sequence[str], do: Callable[[str, Measured], None]) -> None:
    """Do something with each program, one at a time for each entry of `devices`."""
    free: queue.Queue[str] = queue.Queue()
    for device in devices:
        free.put(device)

    def one(program: Measured) -> None:
        device = free.get()
        try:
            do(device, program)
        finally:
            free.put(device)

    with ThreadPoolExecutor(len(devices)) as pool:
        list(pool.map(one, programs))


def _measure_all(
    programs: Sequence[Measured],
    devices: Sequence[str],
    traces: Path,
    options: argparse.Namespace,
    deadline: float,
    work: Path,
    results: dict[str, Any],
) -> None:
    """Measure the programs, one at a time on each GPU, and write the results after each."""
    waiting = deque(programs)
    lock = threading.Lock()
    every = sorted(os.sched_getaffinity(0))

    def serve(number: int) -> None:
        cpus = every[number :: len(devices)]
        server = Server(devices[number], cpus, work / "inductor", options.steps, options.warmup)
        try:
            while True:
                with lock:
                    if not waiting:
                        return
                    turns = -(-len(waiting) // len(devices))
                    program = waiting.popleft()
                end = time.monotonic() + (deadline - time.monotonic()) / turns
                _contained(program, measure, server, traces / f"{program.name}.gz", options.rounds, end, deadline)
                with lock:
                    results[program.name] = summary(program)
                    options.json.write_text(json.dumps(results, indent=1))
                    print(table({program.name: results[program.name]}).splitlines()[-1], flush=True)
        finally:
            server.close()

    threads = [threading.Thread(target=serve, args=(number,)) for number in range(len(devices))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _devices() -> list[str]:
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout
    return [str(number) for number in range(listed.count("GPU "))] or ["0"]


def _tell(began: float, what: str) -> None:
    print(f"{time.monotonic() - began:.0f} s: {what}", file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--checkouts", type=Path, required=True, metavar="DIR", help="where the programs are")
    parser.add_argument("--json", type=Path, default=Path("programs.json"), metavar="FILE", help="where results go")
    parser.add_argument("--traces", type=Path, metavar="DIR", help="keep traces here, and use those that are there")
    parser.add_argument("--record", action="store_true", help="stop when the traces are recorded")
    parser.add_argument("--work", type=Path, metavar="DIR", help="where to copy the programs to")
    parser.add_argument("--seconds", type=float, default=520.0, help="for all together (default: %(default)g)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each variant (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="timed steps of a run (default: %(default)s)")
    parser.add_argument("--warmup", type=int, default=15, help="steps before these (default: %(default)s)")
    parser.add_argument("--recorders", type=int, default=3, help="traces at a time on a GPU (default: %(default)s)")
    parser.add_argument(
        "--experiment-time", type=int, default=90, help="seconds for experiments (default: %(default)s)"
    )
    parser.add_argument(
        "--first", type=float, default=FIRST, metavar="SECONDS", help="for a first run (default: %(default)g)"
    )
    parser.add_argument("--traced", metavar="LIST", help="the programs to record, with commas (default: all)")
    parser.add_argument("--variants", metavar="LIST", help=f"of {', '.join(ORDER[1:])}, with commas (default: all)")
    parser.add_argument("--small", action="store_true", help="on the CPU, with small sizes")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    options = parser.parse_args()
    options.json = options.json.resolve()
    return options


if __name__ == "__main__":
    sys.exit(main())
