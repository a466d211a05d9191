"""The released packages that the benchmarks read, and perflint run over them."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

VERSIONS = {
    "diffusers": "0.42.1",
    "gpytorch": "1.15.2",
    "kornia": "0.9.0",
    "monai": "1.6.1",
    "peft": "0.21.0",
    "sentence_transformers": "6.0.1",
    "timm": "1.0.29",
    "torch_geometric": "2.8.0.post1",
    "torchmetrics": "1.9.0",
    "torchvision": "0.26.0",
    "transformers": "5.17.0",
    "ultralytics": "8.4.190",
}
"""Folder of the package in its wheel, and its version."""


def add_source_option(parser: argparse.ArgumentParser) -> None:
    """`--src DIR`, for sources that lie unpacked already."""
    parser.add_argument(
        "--src",
        type=Path,
        metavar="DIR",
        help="folder that holds the unpacked packages; what is missing there is downloaded into it "
        "(default: all of them, into a folder that is removed afterwards)",
    )


@contextmanager
def sources(names: Iterable[str], folder: Path | None) -> Iterator[Path]:
    """A folder with the sources of some packages, downloaded as wheels where they are missing."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="perflint-benchmark-") as temporary:
            _unpack(names, Path(temporary))
            yield Path(temporary)
        return
    folder.mkdir(parents=True, exist_ok=True)
    _unpack([name for name in names if not (folder / name).is_dir()], folder)
    yield folder


def _unpack(names: Iterable[str], folder: Path) -> None:
    wanted = [f"{name}=={VERSIONS[name]}" for name in names]
    if not wanted:
        return
    with tempfile.TemporaryDirectory(prefix="perflint-wheels-") as wheels:
        # The sources of a compiled package are the same on every platform, so ask for one that exists.
        platform = ["--platform", "manylinux_2_28_x86_64", "--python-version", "3.11", "--only-binary", ":all:"]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *platform, "-d", wheels, *wanted]
        subprocess.run(command, check=True)
        for wheel in sorted(Path(wheels).glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)


def check(folder: Path, package: str, profile: str, traces: Iterable[Path] = ()) -> dict[str, Any]:
    """The JSON document of `perflint check` over one package, paths relative to `folder`, with verdicts of traces.

    Raises subprocess.CalledProcessError with perflint's own words on standard error where it
    could not run.
    """
    # -P keeps the packages in `folder` out of the way of perflint's own imports; --isolated
    # ignores what they configure for themselves.
    command = [sys.executable, "-P", "-m", "perflint", "check", package, "--profile", profile]
    command += ["--isolated", "--no-cache", "--exit-zero", "--output-format", "json"]
    command += [argument for trace in traces for argument in ("--trace", str(trace))]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=False)
    if not done.stdout:
        raise subprocess.CalledProcessError(done.returncode, command)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    """A Markdown table; all columns but the first are numbers."""
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
