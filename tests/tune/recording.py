"""Record what searches do on a GPU, so that tests without one can make them again.

    python -m tests.tune.recording OUT [PROGRAM...]

Runs `perflint tune` on each program of `recorded/` and writes to OUT what belongs beside it: the report (`.txt`), the
patch, and the log of the runs with the helpers of graphs as they were (`.runs.xz`). A search of the tests takes its
runs from that log, where it finds them by the files as they ran. What it reports and writes is made anew, but for the
helpers: those of today run on a GPU by themselves (`python -m tests.tune.simulated OUT --gpu`). Where a change writes
other files, record its programs again.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from perflint.cli import tune
from perflint.cli.main import main as perflint
from perflint.frozen import dataclass
from perflint.tune.graphs import writing
from perflint.tune.log import Log
from perflint.verify.execution import Program, Run

RECORDED = Path(__file__).parent / "recorded"
OPTIONS = {
    "collectives": ["--only", "collectives"],
    "compiled": ["--only", "compile"],
    "images": ["--only", "loader"],
    "layout": ["--allow", "precision", "--only", "tf32,bf16,channels_last"],
    "optimizer": ["--only", "fixes"],
    "precision": ["--allow", "precision", "--only", "tf32,bf16,channels_last"],
    "reads": ["--only", "fixes"],
}
LAUNCHERS = {"collectives": ["-m", "torch.distributed.run", "--nproc-per-node", "2"]}
"""What stands between the interpreter and the program."""
_CPUS = 16
"""Those of the machine with the GPU: the number of workers follows from them."""


class Unrecorded(Exception):
    """A search wants a run that was not recorded."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search left."""

    status: int
    report: str
    told: str
    patch: str

    def golden(self, name: str) -> str:
        """The report, with the command and the exit status."""
        return f"$ {' '.join(['perflint', *_words(name, 'python')])}\n{self.report}exit status {self.status}\n"


def replayed(name: str, folder: Path) -> Searched:
    """The search of a program with its recorded runs, in a folder. Raises Unrecorded."""
    helpers, _, runs = lzma.decompress((RECORDED / f"{name}.runs.xz").read_bytes()).partition(b"\n")
    log = folder / "log"
    log.write_bytes(runs)
    texts = json.loads(helpers)
    with patch.object(writing, "_helper_text", lambda helper: texts[helper.name]):
        return _searched(name, folder / "program", log, is_recording=False)


def recorded(name: str, folder: Path) -> tuple[Searched, bytes]:
    """The search of a program, which runs in a folder, and its packed runs."""
    log = folder / "log"
    found = _searched(name, folder / "program", log, is_recording=True)
    helpers = json.dumps({each.name: writing._helper_text(each) for each in writing.HELPERS})
    return found, lzma.compress(helpers.encode() + b"\n" + log.read_bytes())


def _searched(name: str, folder: Path, log: Path, is_recording: bool) -> Searched:
    missing = []
    known = Log(log)

    class Recorded(Program):
        def run(self, changes: Mapping[str, bytes], *arguments: Any) -> Run:
            texts = {os.path.relpath(path, folder): text.decode() for path, text in changes.items()}

            def do() -> Run:
                if is_recording:
                    return super(Recorded, self).run(changes, *arguments)
                missing.append(texts)
                raise KeyboardInterrupt

            return known.run(json.dumps([texts, *arguments[1:]]), do)[0]

    folder.mkdir()
    shutil.copy(RECORDED / f"{name}.py", folder / "train.py")
    out, err = io.StringIO(), io.StringIO()
    with (
        chdir(folder),
        patch.object(tune, "Program", Recorded),
        patch.object(os, "sched_getaffinity", lambda _: range(_CPUS), create=True),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        status = perflint(_words(name, sys.executable))
    if missing:
        raise Unrecorded("\n".join(f"{path}:\n{text}" for path, text in missing[0].items()))
    left = folder / "perflint-tune.patch"
    return Searched(status, out.getvalue(), err.getvalue(), left.read_text("utf-8") if left.exists() else "")


def _words(name: str, interpreter: str) -> list[str]:
    launcher = LAUNCHERS.get(name, [])
    return ["tune", "--repeat", "2", *OPTIONS.get(name, []), "--", interpreter, *launcher, "train.py"]


def main(target: str, *names: str) -> None:
    """Record some programs, or all."""
    for name in names or sorted(path.stem for path in RECORDED.glob("*.py")):
        with tempfile.TemporaryDirectory() as made:
            found, runs = recorded(name, Path(made))
        place = Path(target) / name
        place.with_suffix(".txt").write_text(found.golden(name), encoding="utf-8")
        place.with_suffix(".patch").write_text(found.patch, encoding="utf-8")
        place.with_suffix(".runs.xz").write_bytes(runs)
        print(found.told, found.golden(name), sep="", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
