"""Runs programs and records where they synchronise with the GPU and which lines they run.

    python tools/record_truth.py SCRIPT... [--root DIR] [--output FILE] [--simulate] [-- ARGUMENTS]

Each program runs as it would by itself, with ARGUMENTS, under
`torch.cuda.set_sync_debug_mode("warn")`. For each synchronisation the innermost frame of a file
below DIR is kept (default: the folder of the first script); of the files below DIR it is noted
which lines ran, and how often. Several programs run one after another, each in a process of its
own, into one recording. `--simulate` runs them on the CPU and simulates a GPU, as `perflint trace
--simulate` does. A script that only drives a program lies outside of DIR; `--name` is then the name
of the program in the recording.

The recording is JSON, compressed where FILE ends in `.gz` (default: truth.json.gz):

torch, gpu, python, versions
    What it was recorded with.
programs
    By program: its arguments, exit status, seconds, and `steps`: how often its busiest optimizer
    stepped, 0 where it has none.
lines
    By phase and file, the lines that ran. Phase `cuda` starts when the program first uses the
    GPU; what ran before it is `init`.
counts
    By file and line, how often it ran; `COUNT_LIMIT` stands for that often or more.
syncs
    Places that synchronised: file, line, end_line (from 1), col, end_col (from 0, in bytes, the
    end exclusive), func, count, phases, and `inner`, the innermost frame. `excluded` says why no
    finding is asked for: `module-move` for a whole module on its way to the device, `raise` for
    the message of an exception.
pageable
    Places, in the same form, of copies with non_blocking=True whose memory on the host is not
    pinned. torch's sync debug mode does not report them, but the driver may make the host wait.

Not seen: what worker processes do, and waits in code that is not torch's.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import os
import site
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import metadata
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

sys.path.insert(0, str(Path(__file__).parents[1]))

from perflint.tracer import copies, simulation, syncs

COUNT_LIMIT = 10_000
HERE = str(Path(__file__).resolve().parents[1]) + os.sep
TORCH = str(Path(torch.__file__).parent) + os.sep
MOVES = frozenset({"Module._apply", "Module.to", "Module.cuda"})


@dataclass(frozen=True, slots=True)
class Place:
    """An expression of a recorded file: lines from 1, columns in bytes from 0."""

    file: str
    line: int
    end_line: int
    col: int
    end_col: int
    func: str


@dataclass(slots=True)
class Hits:
    """What was seen at one place."""

    inner: str
    phases: Counter[str] = field(default_factory=Counter)
    excluded: str = ""


class Lines:
    """Counts the lines that run in the files below a folder."""

    def __init__(self, name_of: Callable[[str], str], phase: Callable[[], str]) -> None:
        self.counts: dict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
        self._name_of = name_of
        self._phase = phase
        self._tool = -1

    def start(self) -> None:
        if sys.version_info < (3, 12):
            threading.settrace(self._trace)
            sys.settrace(self._trace)
            return
        monitoring = sys.monitoring
        self._tool = next(number for number in range(6) if monitoring.get_tool(number) is None)
        monitoring.use_tool_id(self._tool, "record_truth")
        monitoring.register_callback(self._tool, monitoring.events.LINE, self._line)
        monitoring.set_events(self._tool, monitoring.events.LINE)

    def stop(self) -> None:
        if sys.version_info < (3, 12):
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            return
        sys.monitoring.set_events(self._tool, sys.monitoring.events.NO_EVENTS)
        sys.monitoring.free_tool_id(self._tool)

    def _line(self, code: CodeType, line: int) -> Any:
        name = self._name_of(code.co_filename)
        if not name or self._note(name, line) >= COUNT_LIMIT:
            return sys.monitoring.DISABLE
        return None

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        name = self._name_of(frame.f_code.co_filename)
        if not name:
            return None
        if event == "line":
            self._note(name, frame.f_lineno)
        return self._trace

    def _note(self, name: str, line: int) -> int:
        place = (self._phase(), line)
        self.counts[name][place] += 1
        return self.counts[name][place]


class Recorder:
    """Records while it is entered; `document` gives what it saw.

    Meant to be entered once in a process: the mode and the wrapped methods are the process's.
    """

    def __init__(self, root: Path) -> None:
        self.root = str(root.resolve()) + os.sep
        self.syncs: dict[Place, Hits] = {}
        self.pageable: dict[Place, Hits] = {}
        self.lines = Lines(self.name_of, self.phase)
        self._optimizer_steps: Counter[int] = Counter()
        self._names: dict[str, str] = {}
        self._undo = ExitStack()

    @property
    def steps(self) -> int:
        """How often the busiest optimizer stepped."""
        return max(self._optimizer_steps.values(), default=0)

    def __enter__(self) -> Recorder:
        self._undo.callback(syncs.listen(self._synced))
        self._undo.callback(copies.listen(lambda direction, size, frame: self.note(self.pageable, frame)))
        hook = register_optimizer_step_post_hook(self._count_step)
        self._undo.callback(hook.remove)
        self.lines.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.lines.stop()
        self._undo.close()

    def name_of(self, path: str) -> str:
        """A file relative to the root, or "" where it is none of the program's."""
        if path not in self._names:
            # A folder in `sys.path` may be written with `..`.
            plain = os.path.normpath(path)
            own = plain.startswith(self.root) and not plain.startswith(TORCH) and plain != __file__
            self._names[path] = plain[len(self.root) :].replace(os.sep, "/") if own else ""
        return self._names[path]

    def _count_step(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        self._optimizer_steps[id(optimizer)] += 1

    @staticmethod
    def phase() -> str:
        return "cuda" if torch.cuda.is_initialized() else "init"

    def _synced(self, kind: str, frame: FrameType | None) -> None:
        # An explicit sync is none that the mode reports.
        if kind == "implicit":
            self.note(self.syncs, frame)

    def note(self, into: dict[Place, Hits], innermost: FrameType | None) -> None:
        """Count a hit at the innermost frame of the program."""
        frames = list(_stack(innermost))
        for depth, frame in enumerate(frames):
            if name := self.name_of(frame.f_code.co_filename):
                place = _place(name, frame)
                hits = into.setdefault(place, Hits(self._inner(frames[0])))
                hits.phases[self.phase()] += 1
                if any(inside.f_code.co_qualname in MOVES for inside in frames[:depth]):
                    hits.excluded = "module-move"
                return

    def document(self) -> dict[str, Any]:
        """The recording, ready for JSON."""
        files = {name: Source.read(Path(self.root) / name) for name in self.lines.counts}
        lines: dict[str, dict[str, list[int]]] = {"init": {}, "cuda": {}}
        counts: dict[str, dict[str, int]] = {}
        for name, seen in sorted(self.lines.counts.items()):
            for phase, ran in lines.items():
                if here := sorted(line for at, line in seen if at == phase):
                    ran[name] = here
            numbers = sorted({line for _, line in seen})
            totals = {line: seen["init", line] + seen["cuda", line] for line in numbers}
            counts[name] = {str(line): min(total, COUNT_LIMIT) for line, total in totals.items()}
        return {
            "torch": torch.__version__,
            "gpu": _gpu(),
            "python": sys.version.split()[0],
            "versions": _versions(files.values()),
            "programs": {},
            "lines": lines,
            "counts": counts,
            "syncs": _rows(self.syncs, files),
            "pageable": _rows(self.pageable, files),
        }

    def _inner(self, frame: FrameType) -> str:
        path = frame.f_code.co_filename
        for folder in (self.root, HERE, *(f"{packages}{os.sep}" for packages in site.getsitepackages())):
            path = path.removeprefix(folder)
        return f"{path.replace(os.sep, '/')}:{frame.f_lineno}"


@dataclass(frozen=True, slots=True)
class Source:
    """What a recorded file's text says."""

    raises: tuple[range, ...] = ()
    imports: frozenset[str] = frozenset()

    @classmethod
    def read(cls, path: Path) -> Source:
        nodes = list(ast.walk(ast.parse(path.read_bytes()))) if path.suffix == ".py" else []
        raises = (range(node.lineno, node.end_lineno + 1) for node in nodes if isinstance(node, ast.Raise))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
        return cls(tuple(raises), frozenset(name.split(".")[0] for name in names))


def _gpu() -> str:
    if simulation.is_on():
        return "simulated"
    return torch.cuda.get_device_name() if torch.cuda.is_initialized() else ""


def _differs(part: str, difference: str) -> None:
    print(f"{part}: {difference}", file=sys.stderr)


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames outwards, without those of this file."""
    while frame is not None:
        if frame.f_code.co_filename != __file__:
            yield frame
        frame = frame.f_back


def _place(name: str, frame: FrameType) -> Place:
    line, end_line, col, end_col = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    if line is None or end_line is None:
        line = end_line = frame.f_lineno
    return Place(name, line, end_line, col or 0, end_col or 0, frame.f_code.co_qualname)


def _rows(places: dict[Place, Hits], files: dict[str, Source]) -> list[dict[str, Any]]:
    rows = []
    for place, hits in sorted(places.items(), key=lambda item: (item[0].file, item[0].line, item[0].col)):
        row = {name: getattr(place, name) for name in ("file", "line", "end_line", "col", "end_col")}
        row |= {"count": hits.phases.total(), "func": place.func, "inner": hits.inner, "phases": dict(hits.phases)}
        in_raise = any(place.line in span for span in files.get(place.file, Source()).raises)
        if excluded := hits.excluded or ("raise" if in_raise else ""):
            row["excluded"] = excluded
        rows.append(row)
    return rows


def _versions(sources: Iterable[Source]) -> dict[str, str]:
    """The installed packages, other than torch, that recorded files import."""
    found = {}
    for name in sorted(frozenset().union(*(source.imports for source in sources)) - {"torch"}):
        if name not in sys.stdlib_module_names:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
    return found


def record(script: Path, arguments: list[str], root: Path, output: Path, simulate: bool = False, name: str = "") -> int:
    """Run one program in this process, write its recording, and give its exit status."""
    if simulate:
        simulation.start(_differs)
    recorder = Recorder(root)
    sys.argv = [str(script), *arguments]
    sys.path[0] = str(script.resolve().parent)
    code = compile(script.read_bytes(), str(script.resolve()), "exec")
    module = types.ModuleType("__main__")
    module.__file__ = str(script)
    # Pickled names and multiprocessing look the program up here.
    sys.modules["__main__"] = module
    start = time.perf_counter()
    with recorder:
        status = _run(code, module)
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
    seconds = round(time.perf_counter() - start, 2)
    document = recorder.document()
    name = name or recorder.name_of(str(script.resolve())) or script.name
    document["programs"] = {
        name: {"arguments": arguments, "status": status, "seconds": seconds, "steps": recorder.steps}
    }
    write(output, document)
    return status


def _run(code: CodeType, module: types.ModuleType) -> int:
    """Run a program to its end, whatever that is: the recording is worth keeping."""
    try:
        exec(code, module.__dict__)
    except SystemExit as exit_:
        if exit_.code is None or isinstance(exit_.code, int):
            return exit_.code or 0
        print(exit_.code, file=sys.stderr)
        return 1
    except BaseException as error:
        frame = error.__traceback__
        traceback.print_exception(error.with_traceback(frame.tb_next if frame else None))
        return 1
    return 0


def record_each(scripts: list[Path], arguments: list[str], root: Path, output: Path, limit: float | None) -> int:
    """Run programs in processes of their own and write one recording of all."""
    whole: dict[str, Any] = {}
    worst = 0
    with tempfile.TemporaryDirectory(prefix="record-truth-") as folder:
        for number, script in enumerate(scripts):
            part = Path(folder) / f"{number}.json"
            command = [sys.executable, __file__, str(script), "--root", str(root), "--output", str(part)]
            try:
                status = subprocess.run([*command, "--", *arguments], timeout=limit).returncode
            except subprocess.TimeoutExpired:
                status = 124
            worst = worst or status
            print(f"{script}: exit status {status}", file=sys.stderr)
            if part.exists():
                merge(whole, read(part))
                write(output, whole)  # each time, so that an interruption loses little
    return worst


def merge(whole: dict[str, Any], part: dict[str, Any]) -> None:
    """Add one recording to another, file by file and place by place."""
    if not whole:
        whole.update(part)
        return
    whole["gpu"] = whole["gpu"] or part["gpu"]
    whole["versions"] |= part["versions"]
    whole["programs"] |= part["programs"]
    for phase, files in part["lines"].items():
        into = whole["lines"][phase]
        for name, lines in files.items():
            into[name] = sorted({*into.get(name, ()), *lines})
    for name, counts in part["counts"].items():
        total = Counter(whole["counts"].get(name, {})) + Counter(counts)
        whole["counts"][name] = {line: min(total[line], COUNT_LIMIT) for line in sorted(total, key=int)}
    for key in ("syncs", "pageable"):
        rows = {_where(row): row for row in whole[key]}
        for row in part[key]:
            if (known := rows.get(_where(row))) is None:
                whole[key].append(row)
            else:
                known["count"] += row["count"]
                known["phases"] = dict(Counter(known["phases"]) + Counter(row["phases"]))
        whole[key].sort(key=_where)


def _where(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("file", "line", "col", "end_line", "end_col", "func"))


def read(path: Path) -> dict[str, Any]:
    """A recording from a file, compressed or not."""
    data = path.read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return document


def write(path: Path, document: dict[str, Any]) -> None:
    """Write a recording, the same bytes each time for the same content."""
    data = json.dumps(document, separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def main() -> int:
    """Read the command line, record."""
    parser = argparse.ArgumentParser(
        description="record where programs synchronise with the GPU",
        usage="%(prog)s SCRIPT... [options] [-- ARGUMENTS]",
    )
    parser.add_argument("scripts", nargs="+", type=Path, metavar="SCRIPT")
    parser.add_argument("--root", type=Path, metavar="DIR", help="record files below it (default: the first script's)")
    parser.add_argument("--output", type=Path, default=Path("truth.json.gz"), metavar="FILE")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="stop each of several programs after this time")
    own, _, arguments = _split(sys.argv[1:])
    parser.add_argument("--simulate", action="store_true", help="run on the CPU and simulate a GPU")
    parser.add_argument("--name", default="", help="the program that the one script drives (default: the script)")
    options = parser.parse_args(own)
    root = options.root or options.scripts[0].resolve().parent
    if len(options.scripts) == 1:
        output = options.output.resolve()
        return record(options.scripts[0], arguments, root, output, options.simulate, options.name)
    return record_each(options.scripts, arguments, root, options.output, options.limit)


def _split(words: list[str]) -> tuple[list[str], str, list[str]]:
    """The words before and after the first `--`."""
    at = words.index("--") if "--" in words else len(words)
    return words[:at], "--", words[at + 1 :]


if __name__ == "__main__":
    sys.exit(main())
