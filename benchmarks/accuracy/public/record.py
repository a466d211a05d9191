"""Records public programs in the simulation: small drivers run them with random data, and all become one recording.

    python benchmarks/accuracy/public/record.py --checkouts DIR [--repositories PATTERN] [--limit SECONDS] [PROGRAM...]

`programs.toml` lists the programs and their commits; `programs.md` describes how they were drawn. Each is checked out
into a folder of DIR. `drivers/NAME.py` runs it with small data and sizes under `tools/record_truth.py --simulate`.
The driver lies outside of DIR, so neither the recording nor perflint reads it. `--repositories` says where the
repositories are: an address or a folder, with `{owner}` and `{name}` in it. Programs that are named are recorded again;
the rows of the others stay in `truth.json.gz`. To score it:

    python benchmarks/accuracy/run_programs.py --set public --src DIR

The programs import torch, numpy, scipy, networkx, matplotlib, Pillow, tqdm, torch-geometric, lightning, tensorboardX,
loguru, pandas, scikit-learn, typed-argument-parser, transformers (4.36.2), torchvision, opencv-python, piq,
torchattacks, easydict and torchaudio (without its compiled part, if that is of another build of torch).
Packages that are only a service have a substitute in `drivers/substitutes.py`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from tools.record_truth import merge, read, write

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
TRUTH = HERE / "truth.json.gz"
TEXTS = (".py", ".toml", ".cfg", ".txt", ".yml", ".yaml", ".ipynb", ".md", "LICENSE", ".gitignore")
"""The files of a repository that count for perflint or that programs read."""
Document = dict[str, Any]


def main() -> int:
    """Check out, record, write; the exit status is that of the first program that fails."""
    parser = argparse.ArgumentParser(description="record public programs in the simulation")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--checkouts", type=Path, required=True, metavar="DIR")
    parser.add_argument("--repositories", default="https://github.com/{owner}/{name}", metavar="PATTERN")
    parser.add_argument("--limit", type=float, default=600.0, metavar="SECONDS", help="for each program (default: 600)")
    options = parser.parse_args()
    listed = tomllib.loads((HERE / "programs.toml").read_text(encoding="utf-8"))
    checkouts = options.checkouts.resolve()
    whole: Document = read(TRUTH) if TRUTH.exists() else {}
    worst = 0
    for name in options.programs or listed:
        check_out(listed[name], checkouts / name, options.repositories)
        with tempfile.TemporaryDirectory(prefix="record-public-") as folder:
            part = Path(folder) / "part.json"
            status = record(name, listed[name], checkouts, part, options.limit)
            print(f"{name}: exit status {status}", file=sys.stderr)
            worst = worst or status
            if part.exists():
                whole = without(whole, name)
                merge(whole, read(part))
                write(TRUTH, whole)
    return worst


def check_out(entry: Document, into: Path, repositories: str) -> None:
    """Take the texts out of a repository, without what earlier runs left there."""
    shutil.rmtree(into, ignore_errors=True)
    owner, name = entry["repository"].split("/")
    repository = repositories.format(owner=owner, name=name)
    # With a folder `.git` the checkout is a project of its own.
    (into / ".git").mkdir(parents=True)
    if "://" in repository:
        clone = str(into / ".git" / "clone")
        subprocess.run(["git", "clone", "-q", "--bare", "--filter=blob:none", repository, clone], check=True)
        repository = clone
    git = ["git", f"--git-dir={repository}"]
    listing = [*git, "ls-tree", "-rz", "--name-only", entry["commit"]]
    names = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split("\0")
    texts = [name for name in names if name.endswith(tuple(entry.get("texts", TEXTS)))]
    archive = subprocess.run([*git, "archive", entry["commit"], *texts], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(into)], input=archive, check=True)


def record(name: str, entry: Document, checkouts: Path, output: Path, limit: float) -> int:
    """Run one program in a process of its own and give its exit status, 124 past the limit."""
    tool, driver = ROOT / "tools" / "record_truth.py", HERE / "drivers" / f"{name}.py"
    command = [sys.executable, str(tool), str(driver), "--root", str(checkouts), "--name", name, "--simulate"]
    command += ["--output", str(output)]
    # The tensors are small: threads would wait for each other.
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTORCH_JIT": "0"}
    folder = checkouts / name / entry.get("folder", ".")
    try:
        return subprocess.run(command, cwd=folder, env=environment, timeout=limit).returncode
    except subprocess.TimeoutExpired:
        return 124


def without(whole: Document, program: str) -> Document:
    """A recording without the rows of one program."""
    if not whole:
        return {}
    inside = f"{program}/"
    kept = {key: value for key, value in whole.items() if key in ("torch", "gpu", "python", "versions")}
    kept["programs"] = {name: row for name, row in whole["programs"].items() if name != program}
    kept["lines"] = {
        phase: {file: lines for file, lines in files.items() if not file.startswith(inside)}
        for phase, files in whole["lines"].items()
    }
    kept["counts"] = {file: counts for file, counts in whole["counts"].items() if not file.startswith(inside)}
    for key in ("syncs", "pageable"):
        kept[key] = [row for row in whole[key] if not row["file"].startswith(inside)]
    return kept


if __name__ == "__main__":
    sys.exit(main())
