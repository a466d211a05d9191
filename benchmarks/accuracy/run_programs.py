"""Scores perflint's sync findings against programs recorded on a GPU.

    python benchmarks/accuracy/run_programs.py [--set heldout] [--profile audit] [--show missed|false [-n 20]]
    python benchmarks/accuracy/run_programs.py --set public --src DIR [--draw 1|2|3|4] [--program NAME] …

Runs `perflint check` over the programs of a set, `programs.zip` or `heldout.zip`, and prints recall and
precision per program and profile, first for hot lines, then for all. Hot is what ran at least
`FEWEST` times, and, where the program trains, at least once in `STEPS_BETWEEN` steps of its
optimizer. To record the programs of an unpacked set anew, on a machine with a GPU:

    python tools/record_truth.py SET/*.py SET/*/[!_]*.py --root SET --output SET/truth.json.gz

(of the folders, only the scripts that are meant to be run). The programs of `heldout.zip` were written
without a look at what perflint knows, and nothing in perflint was made for them.

The programs of `public` are those of other projects, each checked out into a folder of DIR if it is not there yet.
Small drivers ran them on random data in the simulation.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from checkouts import add_repositories_option, check_out
from recorded import SETS, unpacked
from run import PROFILES, markdown, show, sync_findings
from score import Truth, load, score

PUBLIC = "public"
TRUTH = "truth.json.gz"
FEWEST = 5
STEPS_BETWEEN = 8
TEXTS = (".py", ".toml", ".cfg", ".txt", ".yml", ".yaml", ".ipynb", ".md", "LICENSE", ".gitignore")
"""The files of a repository that count for perflint or that programs read."""


def main() -> None:
    """Run, score, print."""
    parser = argparse.ArgumentParser(description="score sync findings against recorded programs")
    parser.add_argument("--set", choices=(*SETS, PUBLIC), default=SETS[0], help="default: %(default)s")
    parser.add_argument("--profile", action="append", choices=PROFILES, help="only this profile")
    parser.add_argument("--truth", type=Path, help="another recording of the programs")
    parser.add_argument("--show", choices=["missed", "false"], help="print some of the places that cost the score")
    parser.add_argument("-n", type=int, default=20, help="how many of them (default: 20)")
    parser.add_argument("--src", type=Path, metavar="DIR", help="where the public programs are checked out")
    add_repositories_option(parser)
    parser.add_argument("--draw", type=int, help="only the public programs of this draw")
    parser.add_argument("--program", action="append", metavar="NAME", help="only this program of the set")
    options = parser.parse_args()
    if options.set != PUBLIC:
        with tempfile.TemporaryDirectory(prefix="recorded-") as place:
            folder = unpacked(options.set, Path(place))
            print_scores(options, folder, options.truth or folder / TRUTH)
    elif options.src is None:
        parser.error("--set public needs --src")
    else:
        print_scores(options, options.src, options.truth or Path(__file__).with_name(PUBLIC) / TRUTH)


def print_scores(options: argparse.Namespace, folder: Path, recorded: Path) -> None:
    """Check the programs in a folder, and print their scores against a recording."""
    with gzip.open(recorded, "rt", encoding="utf-8") as file:
        recording: dict[str, Any] = json.load(file)
    everything = with_pageable(load(recorded), recording)
    recorded_names = sorted(map(program_of, recording["programs"]))
    names = tuple(options.program or (drawn(options.draw) if options.draw else recorded_names))
    if options.set == PUBLIC:
        present(names, folder, options.repositories)
    # Each public program is a project of its own; the sets of ours are checked whole.
    checked = names if options.set == PUBLIC else (".",)
    for profile in options.profile or PROFILES:
        findings = [place for part in checked for place in sync_findings(folder, part, profile)]
        for title, truth in (("hot lines", hot(everything, recording)), ("all lines", everything)):
            print(f"\nProfile `{profile}`, {title}:\n\n{markdown(truth, findings, names)}")
            if options.show:
                show(score(truth, findings, names), options.show, options.n, folder)


def public() -> dict[str, dict[str, Any]]:
    """The list of public programs, by name."""
    return tomllib.loads(Path(__file__).with_name(PUBLIC).joinpath("programs.toml").read_text(encoding="utf-8"))


def drawn(draw: int) -> list[str]:
    """The public programs of one draw, in the order of their list."""
    return [name for name, entry in public().items() if entry["draw"] == draw]


def present(names: Iterable[str], folder: Path, repositories: str) -> None:
    """Check out the public programs that are not in the folder yet."""
    listed = public()
    for name in names:
        if not (folder / name).exists():
            check_out_texts(listed[name], folder / name, repositories)


def check_out_texts(entry: dict[str, Any], into: Path, repositories: str) -> None:
    """Check out what perflint or the program reads, as a project of its own."""
    part = into.with_name(f"{into.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    endings = tuple(entry.get("texts", TEXTS))
    check_out(entry, part, repositories, lambda path: path.endswith(endings))
    (part / ".git").mkdir()
    part.rename(into)


def program_of(file: str) -> str:
    """The program that a file belongs to: a script, or a folder."""
    return file.split("/", 1)[0]


def with_pageable(truth: Truth, recording: dict[str, Any]) -> Truth:
    """Count a finding at a pageable copy as right: the driver may wait there, unreported."""
    for row in recording["pageable"]:
        truth.synced[row["file"]].update(range(row["line"], row["end_line"] + 1))
    return truth


def hot(truth: Truth, recording: dict[str, Any]) -> Truth:
    """The part of the truth that belongs to steps: lines that ran often enough, and the syncs that came as often."""
    steps = {program_of(name): program["steps"] for name, program in recording["programs"].items()}
    least = {name: max(FEWEST, steps.get(program_of(name), 0) / STEPS_BETWEEN) for name in recording["counts"]}
    ran = {
        name: {int(line) for line, count in counts.items() if count >= least[name]}
        for name, counts in recording["counts"].items()
    }
    often = {
        (row["file"], row["line"], row["end_line"])
        for row in recording["syncs"]
        if row["count"] >= least.get(row["file"], FEWEST)
    }
    # One run of a line may wait many times: a line that saves a model is not in a step.
    sites = [
        site
        for site in truth.sites
        if (site.file, site.line, site.end_line) in often and not ran[site.file].isdisjoint(site.lines)
    ]
    result = Truth(sites=sites)
    result.ran.update(ran)
    result.synced.update(truth.synced)
    return result


if __name__ == "__main__":
    main()
