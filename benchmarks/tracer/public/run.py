"""How many findings in public programs a run gives a verdict on.

    python benchmarks/tracer/public/run.py --checkouts DIR [--repositories PATTERN] [--prepare] [--gpu]
                                           [--json FILE] [--traces DIR] [PROGRAM...]

The programs of `programs.toml` are of different kinds and were not written for perflint. Each is checked out at its
commit into a folder of DIR, gets small random data (`data.py`), and runs for some steps, simulated or with `--gpu` on
a GPU. The findings in its files are judged and counted (`verdict_coverage.py`).

`--repositories` says where the repositories are: an address or a folder, with `{owner}` and `{name}` in it.
`--prepare` stops after the data, for a machine without a network; what is in DIR is not fetched again.
The programs import torch, numpy, torchvision, Pillow, tqdm, scipy, tensorboard, PyYAML, einops, accelerate,
ema-pytorch, pytorch-fid, gymnasium, tyro, pycocotools, tiktoken, more-itertools and dill. Packages that are only a
service or are not released any more have a small substitute in `site-packages`, and so does the part of perflint that
sees only some of the lines that run before Python 3.12.
"""

from __future__ import annotations

import argparse
import random
import shlex
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

from benchmarks.checkouts import add_repositories_option, check_out
from benchmarks.tracer.public import data
from benchmarks.tracer.public.verdict_coverage import Run, add_options, judge

HERE = Path(__file__).parent
DRIVER = "perflint_driver.py"
"""Name of our own file beside the program's; it is not read for findings."""


def programs() -> dict[str, dict[str, Any]]:
    """The list, by name."""
    return tomllib.loads((HERE / "programs.toml").read_text())


def prepared(name: str, entry: dict[str, Any], checkouts: Path, repositories: str) -> Run:
    """A program with its data, checked out if it is not there yet."""
    root = checkouts / name
    folder = root / entry.get("folder", ".")
    if not root.exists():
        part = checkouts / f"{name}.part"
        shutil.rmtree(part, ignore_errors=True)
        check_out(entry, part, repositories, lambda path: _is_part(path, entry))
        place = part / entry.get("folder", ".")
        if "driver" in entry or "launch" in entry:
            source = HERE / "drivers" / entry["driver"] if "driver" in entry else HERE / "launch.py"
            shutil.copy(source, place / DRIVER)
        if "data" in entry:
            random.seed(0)
            np.random.seed(0)
            getattr(data, entry["data"])(place)
        part.rename(root)
    own = [file for file in sorted(folder.rglob("*.py")) if file.name not in (DRIVER, "setup.py")]
    files = tuple(entry.get("files", ())) or tuple(str(file.relative_to(folder)) for file in own)
    arguments = shlex.split(entry.get("arguments", ""))
    script = entry.get("script", DRIVER)
    if "launch" in entry:
        script, arguments = DRIVER, [script, *arguments]
    return Run(name, folder, script, tuple(arguments), files, (str(HERE / "site-packages"),))


def _is_part(path: str, entry: dict[str, Any]) -> bool:
    """True for the Python files of the program, and the few others that it needs."""
    within = f"{entry['folder']}/" if "folder" in entry else ""
    return path in entry.get("also", ()) or (path.endswith(".py") and path.startswith(within))


def main() -> int:
    """Judge the findings in the programs that are named, or in all that can run."""
    parser = argparse.ArgumentParser(description="count the verdicts that runs of public programs give")
    add_options(parser)
    parser.add_argument("--checkouts", type=Path, required=True, metavar="DIR", help="where the programs are put")
    add_repositories_option(parser)
    parser.add_argument("--prepare", action="store_true", help="check out and write the data, and run nothing")
    options = parser.parse_args()
    runs = [
        prepared(name, entry, options.checkouts.resolve(), options.repositories)
        for name, entry in programs().items()
        if (name in options.programs if options.programs else "reason" not in entry)
    ]
    return 0 if options.prepare else judge(runs, options)


if __name__ == "__main__":
    sys.exit(main())
