"""Which sample problems each static tool reports, and which look-alikes.

    python benchmarks/comparison/run.py --tools DIR [--tools DIR] [--json]

`samples/` is code with problems that tuning guides of PyTorch name (`# problem: …`) and with look-alikes that cost
nothing (`# fine`). A tool finds a problem if it reports anything on its line. The tools are those in the virtual
environments DIR; `README.md` beside this file installs them. perflint is the one that runs this script.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLES = Path(__file__).parent / "samples"
_MARK = re.compile(r"#\s*(?P<kind>problem|fine)\b(?:: (?P<about>.*))?$")
_PLACE = re.compile(
    r"^(?:\S*/)?(?P<file>\w+\.py):(?P<line>\d+):(?:\d+:)? +\[?\*?\]? ?(?P<code>[A-Z]+\d+)", re.MULTILINE
)
Place = tuple[str, int]


@dataclass(frozen=True)
class Tool:
    """A static tool, and the command that runs it over the samples."""

    name: str
    command: tuple[str, ...]


_PYLINT = "W8101,W8102,W8201,W8202,R8203,W8204,W8205,W8301,W8401,W8402,W8403"
"""All messages of the plugin."""
_CHECK = ("perflint", "check", "--isolated", "--no-cache", "--output-format", "concise")
PERFLINT = (
    Tool("perflint", (*_CHECK, "--color", "never")),
    Tool("perflint `--profile audit`", (*_CHECK, "--profile", "audit")),
)
TOOLS = (
    Tool("TorchFix", ("torchfix",)),
    Tool("TorchFix `--select ALL`", ("torchfix", "--select", "ALL")),
    Tool(
        "ruff `--select PERF,FURB,NPY,B,SIM,C4`",
        ("ruff", "check", "--isolated", "--select", "PERF,FURB,NPY,B,SIM,C4", "--output-format", "concise"),
    ),
    Tool("flake8 with flake8-bugbear", ("flake8", "--isolated", "--select", "B,C,E9,F")),
    Tool(
        "pylint with the plugin perflint", ("pylint", "--load-plugins=perflint", "--disable=all", f"--enable={_PYLINT}")
    ),
    Tool("hotpath-ai `--include-heuristics`", ("hotpath", "analyze", "--include-heuristics")),
)


def marks() -> dict[str, dict[Place, str]]:
    """The places of problems and of look-alikes, and what each is about."""
    found: dict[str, dict[Place, str]] = {"problem": {}, "fine": {}}
    for path in sorted(SAMPLES.glob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if match := _MARK.search(line):
                found[match["kind"]][path.name, number] = match["about"] or line.split("#")[0].strip()
    return found


def reported(command: Sequence[str]) -> set[Place]:
    """The lines that a tool reports."""
    # A plugin of pylint has the name of this package, so PYTHONPATH must not lead here.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    own = command[0] == sys.executable
    with tempfile.TemporaryDirectory() as folder:
        # A project of its own, since perflint searches a whole project for callers.
        (Path(folder) / "pyproject.toml").touch()
        samples = Path(shutil.copytree(SAMPLES, Path(folder) / "samples"))
        done = subprocess.run(
            [*command, str(samples)],
            capture_output=True,
            text=True,
            check=False,
            cwd=samples,
            env=None if own else environment,
        )
    if "Traceback" in done.stderr:
        raise SystemExit(f"{' '.join(command)}:\n{done.stderr}")
    return places_in(done.stdout)


def places_in(text: str) -> set[Place]:
    """The lines in the output of a tool."""
    return {(found["file"], int(found["line"])) for found in _PLACE.finditer(text)} | of_hotpath(text)


def of_hotpath(text: str) -> set[Place]:
    """The places in the text of hotpath-ai: lines with numbers below the name of a file."""
    places, name = set(), ""
    for line in text.splitlines():
        if line.endswith(".py"):
            name = line.rpartition("/")[2]
        if place := re.match(r" +\[\w+\] \$* (?:\w+ )line (\d+):", line):
            places.add((name, int(place[1])))
    return places


def row(name: str, places: set[Place], wanted: dict[str, dict[Place, str]]) -> str:
    """A tool's row of the first table."""
    problems, fine = wanted["problem"].keys(), wanted["fine"].keys()
    return f"| {name} | {len(places & problems)} | {len(places & fine)} | {len(places - problems - fine)} |"


def main() -> None:
    """Print a table of the tools, and the problems that each finds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--tools", type=Path, action="append", default=[], help="a virtual environment with other tools"
    )
    parser.add_argument("--json", action="store_true", help="print places instead of a table")
    arguments = parser.parse_args()
    wanted = marks()
    rows = []
    for tool in (*PERFLINT, *TOOLS):
        command = _located(tool, arguments.tools)
        if command is None:
            print(f"{tool.name}: not installed", file=sys.stderr)
            continue
        places = reported(command)
        rows.append((tool.name, places))
    if arguments.json:
        print(json.dumps({name: sorted(places) for name, places in rows}, indent=1))
        return
    problems, fine = wanted["problem"], wanted["fine"]
    print(f"| tool | of {len(problems)} problems | of {len(fine)} look-alikes | other lines |\n|---|---:|---:|---:|")
    for name, places in rows:
        print(row(name, places, wanted))
    print("\n| problem |", " | ".join(name for name, _ in rows), "|\n|---|" + "---|" * len(rows))
    for kind in (problems, fine):
        for place, about in kind.items():
            print(
                f"| {place[0]}:{place[1]} {about} |",
                " | ".join("×" if place in places else "" for _, places in rows),
                "|",
            )


def _located(tool: Tool, environments: Sequence[Path]) -> list[str] | None:
    program, *rest = tool.command
    if program == "perflint":
        return [sys.executable, "-m", *tool.command]
    for environment in environments:
        path = environment / "bin" / program
        # The two plugins of the name perflint cannot share an environment, so pylint's needs one of its own.
        if path.exists() and (
            program != "pylint" or list(environment.glob("lib/*/site-packages/perflint/list_checker.py"))
        ):
            return [str(path), *rest]
    return None


if __name__ == "__main__":
    main()
