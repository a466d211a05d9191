"""Runs perflint over large released packages.

    python benchmarks/ecosystem/run.py [--src DIR] [--profile audit]

Prints, as Markdown, files, lines, seconds, findings per rule, and internal errors. Exits with 1
where perflint had an internal error.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from packages import VERSIONS, add_source_option, check, sources, table

PACKAGES = ("timm", "torchvision", "kornia", "diffusers", "transformers")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="run perflint over large packages")
    add_source_option(parser)
    parser.add_argument("--profile", default="audit", choices=["default", "pedantic", "audit"])
    parser.add_argument("--package", action="append", choices=sorted(VERSIONS), help="only this package")
    options = parser.parse_args()
    packages = tuple(options.package or PACKAGES)
    results: dict[str, tuple[dict[str, Any], float]] = {}
    with sources(packages, options.src) as folder:
        for package in packages:
            start = time.perf_counter()
            document = check(folder, package, options.profile)
            results[package] = document, time.perf_counter() - start
    print(f"\nProfile `{options.profile}`:\n\n{totals(results)}\n\n{per_rule(results)}")
    faults = [error for document, _ in results.values() for error in document["errors"]]
    for error in faults:
        print(f"{error['path']}:{error['line'] or 1}: {error['message']}", file=sys.stderr)
    raise SystemExit(any(error["internal"] for error in faults))


def totals(results: dict[str, tuple[dict[str, Any], float]]) -> str:
    """Size, time and errors of each package."""
    rows = []
    for package, (document, seconds) in results.items():
        summary, errors = document["summary"], document["errors"]
        internal = sum(error["internal"] for error in errors)
        sizes = f"{summary['files']:,}", f"{summary['lines']:,}", f"{seconds:.1f}", f"{summary['findings']:,}"
        rows.append([f"{package} {VERSIONS[package]}", *sizes, str(len(errors) - internal), str(internal)])
    return table(["package", "files", "lines", "seconds", "findings", "unreadable files", "internal errors"], rows)


def per_rule(results: dict[str, tuple[dict[str, Any], float]]) -> str:
    """Findings of each rule in each package."""
    counts = {
        package: Counter((finding["code"], finding["name"]) for finding in document["findings"])
        for package, (document, _) in results.items()
    }
    rules = sorted(set().union(*counts.values()))
    rows = [[f"{code} {name}", *(str(counts[package][code, name]) for package in counts)] for code, name in rules]
    return table(["rule", *counts], rows)


if __name__ == "__main__":
    main()
