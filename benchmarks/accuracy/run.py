"""Scores perflint's sync findings against syncs recorded on a GPU.

    python benchmarks/accuracy/run.py [--set more] [--src DIR] [--profile audit] [--show missed|false [-n 20]]

Downloads the packages that were recorded, runs `perflint check` over each, and prints
recall, precision and F1 per package and profile as Markdown. There are two recordings: `first`
has seven packages, `more` has four others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from packages import add_source_option, check, sources, table
from score import Place, Score, Truth, load, score

SETS = {
    "first": ("gpytorch", "kornia", "monai", "peft", "sentence_transformers", "torchvision", "ultralytics"),
    "more": ("diffusers", "torch_geometric", "torchmetrics", "transformers"),
}
"""The packages of each recording."""

PROFILES = ("audit", "default")

EFFECTS = frozenset({"sync", "transfer", "allocation"})
"""The effects that count as a claim "this line synchronizes".

Transfers do: each of their rules is about a copy between host and device that blocks. So do
allocations: a cache that is emptied waits for the GPU.
"""

NO_CLAIM = frozenset({"TPF207", "TPF211", "TPF402", "TPF921"})
"""Rules with such an effect whose pages claim no wait at the line of the finding.

Two report a copy from the GPU to the GPU. TPF402 and TPF921 report a constructor; the copies are in the loop over the
loader and in the forward pass.
"""

TRUTHS = {
    "first": Path(__file__).with_name("sync_truth.json.gz"),
    "more": Path(__file__).with_name("more_truth.json.gz"),
}


def main() -> None:
    """Run, score, print."""
    parser = argparse.ArgumentParser(description="score sync findings against a recording")
    add_source_option(parser)
    parser.add_argument("--set", choices=SETS, default="first", help="the recording (default: first)")
    parser.add_argument("--profile", action="append", choices=PROFILES, help="only this profile")
    parser.add_argument("--package", action="append", metavar="NAME", help="only this package of the recording")
    parser.add_argument("--show", choices=["missed", "false"], help="print some of the places that cost the score")
    parser.add_argument("-n", type=int, default=20, help="how many of them (default: 20)")
    options = parser.parse_args()
    recorded = SETS[options.set]
    packages = tuple(options.package or recorded)
    if unknown := sorted(set(packages) - set(recorded)):
        parser.error(f"not in the recording {options.set}: {', '.join(unknown)}; it has {', '.join(recorded)}")
    truth = load(TRUTHS[options.set])
    with sources(packages, options.src) as folder:
        for profile in options.profile or PROFILES:
            findings = [place for package in packages for place in sync_findings(folder, package, profile)]
            print(f"\nProfile `{profile}`:\n\n{markdown(truth, findings, packages)}")
            if options.show:
                show(score(truth, findings, packages), options.show, options.n, folder)


def sync_findings(folder: Path, package: str, profile: str) -> Iterator[Place]:
    """The findings of a package that claim a sync."""
    for finding in check(folder, package, profile)["findings"]:
        if claims_wait(finding):
            path = finding["path"].replace("\\", "/")
            yield Place(path, finding["line"], finding["end_line"], finding["code"])


def claims_wait(finding: Mapping[str, Any]) -> bool:
    """True if a finding claims that its line synchronizes."""
    return finding["effect"] in EFFECTS and finding["code"] not in NO_CLAIM


def markdown(truth: Truth, findings: list[Place], packages: tuple[str, ...]) -> str:
    """The scores of each package and of all."""
    groups = [(name, (name,)) for name in packages] + [("**all**", packages)]
    rows = [row(name, score(truth, findings, group)) for name, group in groups]
    return table(["package", "sync sites", "recall", "judged findings", "precision", "F1"], rows)


def row(name: str, result: Score) -> list[str]:
    """One row of the table."""
    shares = f"{result.recall:.3f}", f"{result.precision:.3f}", f"{result.f1:.3f}"
    return [name, str(result.sites), shares[0], str(result.judged), shares[1], shares[2]]


def show(result: Score, what: str, count: int, folder: Path) -> None:
    """Print a sample of the places that were missed, or found wrongly, the same one each time."""
    places = sorted(result.missed if what == "missed" else result.false)
    for place in sorted(Random(0).sample(places, min(count, len(places)))):
        text = (folder / place.file).read_text(encoding="utf-8").splitlines()[place.line - 1].strip()
        print(f"{place.file}:{place.line}: {place.what}: {text[:110]}")


if __name__ == "__main__":
    main()
